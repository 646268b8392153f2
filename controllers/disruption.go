package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/apps/poddisruptionbudget"
	"k8s.io/utils/ptr"
)

// disruptedPatience is how long a budget counts a pod that somebody was allowed to evict as gone. When it is over the pod
// is still there, so whoever asked has not deleted it.
const disruptedPatience = 2 * time.Minute

// disruption keeps the status of PodDisruptionBudgets: how many of the pods are healthy, how many must be, and so how many
// may be evicted. Evictions take from that in the API server (apiserver/evict.go); here it is counted anew.
type disruption struct {
	client kubernetes.Interface
	shared informers.SharedInformerFactory
	now    func() time.Time
}

func addDisruption(m *manager) error {
	client, err := m.client("disruption-controller")
	if err != nil {
		return err
	}
	d := &disruption{client: client, shared: m.shared, now: time.Now}
	c := m.add("disruption", 1, d)
	apps := m.shared.Apps().V1()
	watch(c, m.shared.Policy().V1().PodDisruptionBudgets().Informer(), requestFor[*policyv1.PodDisruptionBudget])
	watch(c, m.shared.Core().V1().Pods().Informer(), func(p *corev1.Pod) []Request { return d.budgetsOf(p.Namespace, labels.Set(p.Labels)) })
	// How many pods there should be follows from these; their pods change soon after, but not if there are none to change.
	watch(c, apps.Deployments().Informer(), inNamespace[metav1.Object](d))
	watch(c, apps.ReplicaSets().Informer(), inNamespace[metav1.Object](d))
	watch(c, apps.StatefulSets().Informer(), inNamespace[metav1.Object](d))
	watch(c, m.shared.Core().V1().ReplicationControllers().Informer(), inNamespace[metav1.Object](d))
	return nil
}

// inNamespace asks for all budgets beside an object.
func inNamespace[T metav1.Object](d *disruption) func(T) []Request {
	return func(obj T) []Request { return d.budgetsOf(obj.GetNamespace(), nil) }
}

// budgetsOf asks for the budgets of a namespace that select these labels; for all of them without.
func (d *disruption) budgetsOf(namespace string, of labels.Set) (requests []Request) {
	all, _ := d.shared.Policy().V1().PodDisruptionBudgets().Lister().PodDisruptionBudgets(namespace).List(labels.Everything())
	for _, b := range all {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && (of == nil || selector.Matches(of)) {
			requests = append(requests, Request{types.NamespacedName{Namespace: namespace, Name: b.Name}})
		}
	}
	return requests
}

// Reconcile implements Reconciler.
func (d *disruption) Reconcile(ctx context.Context, req Request) (Result, error) {
	cached, err := d.shared.Policy().V1().PodDisruptionBudgets().Lister().PodDisruptionBudgets(req.Namespace).Get(req.Name)
	if apierrors.IsNotFound(err) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	budget := cached.DeepCopy()
	again, err := d.count(budget)
	if err != nil { // nobody knows: nobody is evicted
		budget.Status.DisruptionsAllowed = 0
		budget.Status.ObservedGeneration = budget.Generation
		meta.SetStatusCondition(&budget.Status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
			Message: err.Error(), ObservedGeneration: budget.Generation,
		})
	}
	if equality.Semantic.DeepEqual(cached.Status, budget.Status) {
		return again, nil
	}
	// On condition that no eviction has come between: that one is counted first.
	_, err = d.client.PolicyV1().PodDisruptionBudgets(req.Namespace).UpdateStatus(ctx, budget, metav1.UpdateOptions{})
	return again, ignoreNotFound(err)
}

// count fills in a budget's status. Again says when the next pod that was to be evicted counts as one that stays.
func (d *disruption) count(budget *policyv1.PodDisruptionBudget) (again Result, err error) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return again, err
	}
	selected, err := d.shared.Core().V1().Pods().Lister().Pods(budget.Namespace).List(selector)
	if err != nil {
		return again, err
	}
	var pods []*corev1.Pod
	for _, p := range selected {
		if !podTerminal(p) {
			pods = append(pods, p)
		}
	}
	status := &budget.Status
	if status.ExpectedPods, status.DesiredHealthy, err = d.demand(budget, pods); err != nil {
		return again, err
	}
	disrupted := map[string]metav1.Time{}
	status.CurrentHealthy = 0
	for _, p := range pods {
		asked, wasAsked := status.DisruptedPods[p.Name]
		if left := asked.Add(disruptedPatience).Sub(d.now()); wasAsked && left > 0 && p.DeletionTimestamp == nil {
			disrupted[p.Name] = asked
			if again.RequeueAfter == 0 || left < again.RequeueAfter {
				again.RequeueAfter = left
			}
			continue
		}
		if podReady(p) && p.DeletionTimestamp == nil {
			status.CurrentHealthy++
		}
	}
	status.DisruptedPods = disrupted
	if len(disrupted) == 0 {
		status.DisruptedPods = nil
	}
	status.DisruptionsAllowed = 0
	if len(pods) > 0 {
		status.DisruptionsAllowed = max(0, status.CurrentHealthy-status.DesiredHealthy)
	}
	status.ObservedGeneration = budget.Generation
	poddisruptionbudget.UpdateDisruptionAllowedCondition(budget)
	return again, nil
}

// demand is how many pods there should be, and how many of them must be healthy. A plain number of minAvailable is of the
// pods that there are; everything else is of what their controllers want.
func (d *disruption) demand(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (expected, healthy int32, err error) {
	if m := budget.Spec.MinAvailable; m != nil && m.Type == intstr.Int {
		return int32(len(pods)), m.IntVal, nil
	}
	if expected, err = d.wanted(budget.Namespace, pods); err != nil {
		return 0, 0, err
	}
	amount := budget.Spec.MinAvailable
	if amount == nil {
		amount = budget.Spec.MaxUnavailable
	}
	if amount == nil {
		return expected, 0, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(amount, int(expected), true)
	if err != nil {
		return 0, 0, err
	}
	if budget.Spec.MinAvailable != nil {
		return expected, int32(n), nil
	}
	return expected, max(0, expected-int32(n)), nil
}

// wanted sums the replicas of the controllers of pods, each once; a ReplicaSet of a Deployment stands for that. Pods
// without a controller count for nothing.
func (d *disruption) wanted(namespace string, pods []*corev1.Pod) (sum int32, err error) {
	seen := map[types.UID]bool{}
	for _, p := range pods {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil {
			continue
		}
		uid, replicas, err := d.replicasOf(namespace, owner)
		if err != nil {
			return 0, err
		}
		if !seen[uid] {
			seen[uid] = true
			sum += replicas
		}
	}
	return sum, nil
}

func (d *disruption) replicasOf(namespace string, owner *metav1.OwnerReference) (uid types.UID, replicas int32, err error) {
	apps := d.shared.Apps().V1()
	switch owner.Kind {
	case "ReplicaSet":
		set, err := apps.ReplicaSets().Lister().ReplicaSets(namespace).Get(owner.Name)
		if err != nil {
			return "", 0, err
		}
		if above := metav1.GetControllerOfNoCopy(set); above != nil && above.Kind == "Deployment" {
			return d.replicasOf(namespace, above)
		}
		return set.UID, ptr.Deref(set.Spec.Replicas, 1), nil
	case "Deployment":
		deployment, err := apps.Deployments().Lister().Deployments(namespace).Get(owner.Name)
		if err != nil {
			return "", 0, err
		}
		return deployment.UID, ptr.Deref(deployment.Spec.Replicas, 1), nil
	case "StatefulSet":
		set, err := apps.StatefulSets().Lister().StatefulSets(namespace).Get(owner.Name)
		if err != nil {
			return "", 0, err
		}
		return set.UID, ptr.Deref(set.Spec.Replicas, 1), nil
	case "ReplicationController":
		rc, err := d.shared.Core().V1().ReplicationControllers().Lister().ReplicationControllers(namespace).Get(owner.Name)
		if err != nil {
			return "", 0, err
		}
		return rc.UID, ptr.Deref(rc.Spec.Replicas, 1), nil
	}
	return "", 0, fmt.Errorf("pods of a %s %q: it is not known how many there should be; only a number of minAvailable can be kept", owner.Kind, owner.Name)
}
