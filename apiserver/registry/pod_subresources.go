package registry

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func podSubresources(r *Resource) []Subresource {
	return []Subresource{
		connectTo("attach", "PodAttachOptions", "create", "get"),
		binding(),
		ephemeralContainers(r),
		eviction(),
		connectTo("exec", "PodExecOptions", "create", "get"),
		connectTo("log", "Pod", "get"),
		connectTo("portforward", "PodPortForwardOptions", "create", "get"),
		connectTo("proxy", "PodProxyOptions", "create", "delete", "get", "patch", "update"),
		resize(r),
		podStatus(r),
	}
}

func podStatus(r *Resource) Subresource {
	s := statusOf(r, keepForPodStatus)
	s.Validate = validatePodStatus
	s.Resets = append(s.Resets, "metadata.deletionTimestamp", "metadata.ownerReferences")
	return s
}

// keepForPodStatus leaves a status write the status, labels and annotations. The node agent may not
// start a deletion this way, nor change the QoS class once it is set. What clients that do not know it leave out stays.
func keepForPodStatus(p, old *corev1.Pod) {
	p.Spec = old.Spec
	p.OwnerReferences = old.OwnerReferences
	now, was := &p.Status, &old.Status
	setDefault(&now.QOSClass, was.QOSClass)
	if now.ResourceClaimStatuses == nil {
		now.ResourceClaimStatuses = was.ResourceClaimStatuses
	}
	if now.ExtendedResourceClaimStatus == nil {
		now.ExtendedResourceClaimStatus = was.ExtendedResourceClaimStatus
	}
	setDefault(&now.ObservedGeneration, was.ObservedGeneration)
	for i := range now.Conditions {
		j := slices.IndexFunc(was.Conditions, func(c corev1.PodCondition) bool { return c.Type == now.Conditions[i].Type })
		if j >= 0 {
			setDefault(&now.Conditions[i].ObservedGeneration, was.Conditions[j].ObservedGeneration)
		}
	}
}

// binding assigns a pod to a node, once.
func binding() Subresource {
	return Subresource{
		Name:  "binding",
		Kind:  corev1.SchemeGroupVersion.WithKind("Binding"),
		New:   func() runtime.Object { return &corev1.Binding{} },
		Verbs: []string{"create"},
		Create: func(_ context.Context, obj, body runtime.Object) error {
			return bind(obj.(*corev1.Pod), body.(*corev1.Binding))
		},
	}
}

func bind(p *corev1.Pod, b *corev1.Binding) error {
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(corev1.Resource("pods/binding"), p.Name, fmt.Errorf(format, args...))
	}
	switch {
	case b.Target.Kind != "" && b.Target.Kind != "Node":
		return apierrors.NewBadRequest(fmt.Sprintf("binding target must be a Node, not a %q", b.Target.Kind))
	case b.Target.Name == "":
		return apierrors.NewBadRequest("binding target has no name")
	case b.UID != "" && b.UID != p.UID:
		return conflict("Precondition failed: UID in precondition: %v, UID in object meta: %v", b.UID, p.UID)
	case p.DeletionTimestamp != nil:
		return conflict("pod %s is being deleted, cannot be assigned to a host", p.Name)
	case p.Spec.NodeName != "":
		return conflict("pod %s is already assigned to node %q", p.Name, p.Spec.NodeName)
	case len(p.Spec.SchedulingGates) > 0:
		return conflict("pod %s has non-empty .spec.schedulingGates", p.Name)
	}
	p.Spec.NodeName = b.Target.Name
	for key, value := range b.Annotations {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value)
	}
	for key, value := range b.Labels { // where it runs: admission has put the node's zone and region there
		metav1.SetMetaDataLabel(&p.ObjectMeta, key, value)
	}
	setPodScheduled(p)
	return nil
}

func setPodScheduled(p *corev1.Pod) {
	scheduled := corev1.PodCondition{
		Type:               corev1.PodScheduled,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.Now(),
		ObservedGeneration: p.Generation,
	}
	for i, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			p.Status.Conditions[i] = scheduled
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, scheduled)
}

// eviction is a delete that asks the disruption budgets first (apiserver/evict.go).
func eviction() Subresource {
	return Subresource{
		Name:          "eviction",
		Kind:          policyv1.SchemeGroupVersion.WithKind("Eviction"),
		New:           func() runtime.Object { return &policyv1.Eviction{} },
		Verbs:         []string{"create"},
		Create:        func(context.Context, runtime.Object, runtime.Object) error { return nil },
		DeleteOptions: func(body runtime.Object) *metav1.DeleteOptions { return body.(*policyv1.Eviction).DeleteOptions },
	}
}

// ephemeralContainers adds debugging containers to a running pod and can do nothing else.
func ephemeralContainers(r *Resource) Subresource {
	return Subresource{
		Name:  "ephemeralcontainers",
		Kind:  r.GroupVersionKind(),
		New:   r.New,
		Verbs: []string{"get", "patch", "update"},
		Update: updatePreparer(func(p, old *corev1.Pod) {
			wanted := p.Spec.EphemeralContainers
			p.ObjectMeta, p.Spec, p.Status = keepVersion(p, old), *old.Spec.DeepCopy(), *old.Status.DeepCopy()
			p.Spec.EphemeralContainers = wanted
		}),
		Owns:     []string{"spec.ephemeralContainers"},
		Validate: validateEphemeralUpdate,
	}
}

// keepVersion is old's metadata with the resourceVersion and managedFields of p, which the generic
// path has checked and filled in.
func keepVersion(p, old *corev1.Pod) metav1.ObjectMeta {
	meta := *old.ObjectMeta.DeepCopy()
	meta.ResourceVersion, meta.ManagedFields = p.ResourceVersion, p.ManagedFields
	return meta
}
