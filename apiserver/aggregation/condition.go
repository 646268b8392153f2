package aggregation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
)

// condition is the condition Available; nil where there is none.
type condition apiregistrationv1.APIServiceCondition

func (c *condition) isTrue() bool { return c != nil && c.Status == apiregistrationv1.ConditionTrue }

func conditionOf(s *apiregistrationv1.APIService) *condition {
	return (*condition)(helper.GetAPIServiceConditionByType(s, apiregistrationv1.Available))
}

// found makes the condition of a check. Reasons and messages are kube-aggregator's.
func found(status apiregistrationv1.ConditionStatus, reason, format string, args ...any) *condition {
	return &condition{
		Type: apiregistrationv1.Available, Status: status, LastTransitionTime: metav1.Now(),
		Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func passed() *condition {
	return found(apiregistrationv1.ConditionTrue, "Passed", "all checks passed")
}

func failed(reason, format string, args ...any) *condition {
	return found(apiregistrationv1.ConditionFalse, reason, format, args...)
}

func unknown(reason, format string, args ...any) *condition {
	return found(apiregistrationv1.ConditionUnknown, reason, format, args...)
}

// LocalCondition is that of what this server has itself.
func LocalCondition() apiregistrationv1.APIServiceCondition {
	return helper.NewLocalAvailableAPIServiceCondition()
}

// Apply puts a condition into an object, and says whether that has changed it. The time is that of the last change of status.
func Apply(s *apiregistrationv1.APIService, c apiregistrationv1.APIServiceCondition) bool {
	if old := conditionOf(s); old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return false
	}
	helper.SetAPIServiceCondition(s, c)
	return true
}
