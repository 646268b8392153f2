package registry

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// bindings are the old way to assign a pod to a node: the pod's name is in the body.
func bindings() *Resource {
	r := newUnlisted[corev1.Binding](corev1.SchemeGroupVersion, "bindings", "Binding")
	r.Strategy.Validate = validator(func(b *corev1.Binding) field.ErrorList {
		return required(field.NewPath("target", "name"), b.Target.Name)
	})
	return questions(r, true, func(ctx context.Context, server Server, obj runtime.Object) (runtime.Object, error) {
		b := obj.(*corev1.Binding)
		err := server.Command(ctx, corev1.SchemeGroupVersion.WithResource("pods"), b.Namespace, b.Name, "binding", b)
		if err != nil {
			return nil, err
		}
		return &metav1.Status{Status: metav1.StatusSuccess, Code: 201}, nil
	})
}

// componentStatuses show whether the parts of the control plane are well. Kubernetes probes ports on
// localhost; here the scheduler and the controllers live in the process that answers, so that they are as
// alive as the answer, and the store is asked. Deprecated, and still the first thing people type.
func componentStatuses() *Resource {
	r := newRow[corev1.ComponentStatus, corev1.ComponentStatusList](corev1.SchemeGroupVersion, "componentstatuses", "ComponentStatus")
	r.ShortNames, r.Namespaced, r.Verbs, r.Prefix = []string{"cs"}, false, []string{"get", "list"}, ""
	r.Strategy = Strategy{NoGeneration: true}
	r.Answers = &Answers{List: func(ctx context.Context, server Server) []runtime.Object {
		return []runtime.Object{
			component("controller-manager", nil), component("etcd-0", server.StoreHealth(ctx)), component("scheduler", nil),
		}
	}}
	r.Columns = columns([]string{"Name", "Status", "Message", "Error"})
	r.Row = cells(func(c *corev1.ComponentStatus, _ time.Time) []any {
		status, message, failure := "Unknown", "", ""
		for _, condition := range c.Conditions {
			if condition.Type == corev1.ComponentHealthy {
				status, message, failure = "Unhealthy", condition.Message, condition.Error
				if condition.Status == corev1.ConditionTrue {
					status = "Healthy"
				}
			}
		}
		return []any{c.Name, status, message, failure}
	})
	return r
}

func component(name string, failure error) *corev1.ComponentStatus {
	healthy := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: "ok"}
	if failure != nil {
		healthy.Status, healthy.Message, healthy.Error = corev1.ConditionFalse, failure.Error(), ""
	}
	return &corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name}, Conditions: []corev1.ComponentCondition{healthy}}
}
