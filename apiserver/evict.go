package apiserver

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/registry"
)

const (
	// maxDisrupted bounds the evictions that a budget has noted and its controller has not looked at, as in Kubernetes.
	maxDisrupted = 2000
	// evictionRetrySeconds is when to try again after a budget that is still being counted.
	evictionRetrySeconds = 10
	// twoBudgets is what Kubernetes says of a pod that two budgets select.
	twoBudgets = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
	// violation is what whoever evicts is told; the cause says by how much.
	violation = "Cannot evict pod as it would violate the pod's disruption budget."
)

// spendDisruption lets a pod be evicted, at the cost of one of the disruptions that its PodDisruptionBudget allows. The
// answer is 429 when there is none left. A controller gives them back (controllers/disruption.go).
//
// The budget is written on condition that it has not changed, so of many evictions at a time no more succeed than it
// allows, whichever server they come to.
func (s *Server) spendDisruption(ctx context.Context, pod *corev1.Pod, options writeOptions) error {
	if disruptsNothing(pod) {
		return nil
	}
	budget, err := s.budgetOf(ctx, pod)
	if err != nil || budget == nil {
		return err
	}
	t, err := s.targetOf(budget, budget.Namespace)
	if err != nil {
		return err
	}
	spend := change{options: options, next: func(_ context.Context, live runtime.Object) (runtime.Object, error) {
		current := live.(*policyv1.PodDisruptionBudget)
		if isUnhealthyExtra(pod, current) {
			return live, nil
		}
		next := current.DeepCopy()
		if err := spendOne(next, pod.Name); err != nil {
			return nil, err
		}
		return s.track(t, live, next, bootstrapManager)
	}}
	t.sub = t.resource.Subresource("status")
	_, err = s.change(registry.WithAsker(ctx, authenticationv1.UserInfo{}), t, spend) // the server's own write
	return err
}

// disruptsNothing says whether a pod's end takes nothing away: it does not serve, or has been told to end.
func disruptsNothing(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// budgetOf finds the budget that a pod counts in; nil if there is none. Two are one too many.
func (s *Server) budgetOf(ctx context.Context, pod *corev1.Pod) (found *policyv1.PodDisruptionBudget, err error) {
	all, err := lookup{s}.List(ctx, policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), pod.Namespace)
	if err != nil {
		return nil, err
	}
	for _, obj := range all {
		budget := obj.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue // one with a selector that is none selects nothing
		}
		if found != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("%s", twoBudgets))
		}
		found = budget
	}
	return found, nil
}

// isUnhealthyExtra says whether a pod that is not ready may go without a disruption (policy/v1 unhealthyPodEvictionPolicy):
// always, or while enough others are healthy.
func isUnhealthyExtra(pod *corev1.Pod, budget *policyv1.PodDisruptionBudget) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	if p := budget.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return budget.Status.ObservedGeneration >= budget.Generation &&
		budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
}

// spendOne takes one disruption, and notes for which pod.
func spendOne(budget *policyv1.PodDisruptionBudget, pod string) error {
	status := &budget.Status
	resource := policyv1.Resource("poddisruptionbudgets")
	switch {
	case status.ObservedGeneration < budget.Generation:
		return tooManyEvictions(fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name), evictionRetrySeconds)
	case status.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(resource, budget.Name, fmt.Errorf("pdb disruptions allowed is negative"))
	case len(status.DisruptedPods) > maxDisrupted:
		return apierrors.NewForbidden(resource, budget.Name, fmt.Errorf("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case status.DisruptionsAllowed == 0:
		return tooManyEvictions(fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
			budget.Name, status.DesiredHealthy, status.CurrentHealthy), 0)
	}
	status.DisruptionsAllowed--
	if status.DisruptedPods == nil {
		status.DisruptedPods = map[string]metav1.Time{}
	}
	status.DisruptedPods[pod] = metav1.Time{Time: time.Now()}
	return nil
}

func tooManyEvictions(cause string, retrySeconds int) error {
	err := apierrors.NewTooManyRequests(violation, retrySeconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}
