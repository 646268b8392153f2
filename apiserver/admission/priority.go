package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// priority writes the number of its priority class into a pod, which nobody else may do, and keeps the default class
// the only one.
type priority struct{ objects Objects }

var priorityClasses = schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")

// Mutate implements Mutator.
func (p priority) Mutate(ctx context.Context, r *Request) error {
	pod, ok := r.Object.(*corev1.Pod)
	if !ok || r.Subresource != "" {
		return nil
	}
	if old, ok := r.Old.(*corev1.Pod); ok { // it is decided; an update may leave it out
		setIfNil(&pod.Spec.Priority, old.Spec.Priority)
		setIfNil(&pod.Spec.PreemptionPolicy, old.Spec.PreemptionPolicy)
		return nil
	}
	class, err := p.classOf(ctx, r, pod)
	if err != nil {
		return err
	}
	value, policy := int32(0), corev1.PreemptLowerPriority
	if class != nil {
		value, pod.Spec.PriorityClassName = class.Value, class.Name
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
	}
	if said := pod.Spec.Priority; said != nil && *said != value {
		return refused(r, "the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *said, value)
	}
	if said := pod.Spec.PreemptionPolicy; said != nil && *said != policy {
		return refused(r, "the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *said, policy)
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &value, &policy
	return nil
}

func setIfNil[T any](field **T, value *T) {
	if *field == nil {
		*field = value
	}
}

// classOf is the class that the pod names, or the default one; nil if there is neither.
func (p priority) classOf(ctx context.Context, r *Request, pod *corev1.Pod) (*schedulingv1.PriorityClass, error) {
	if name := pod.Spec.PriorityClassName; name != "" {
		found, err := p.objects.Get(ctx, priorityClasses, "", name)
		if apierrors.IsNotFound(err) {
			return nil, refused(r, "no PriorityClass with name %s was found", name)
		}
		if err != nil {
			return nil, err
		}
		return found.(*schedulingv1.PriorityClass), nil
	}
	return p.defaultClass(ctx, r)
}

// defaultClass is the class of pods that name none; of several, the least.
func (p priority) defaultClass(ctx context.Context, r *Request) (*schedulingv1.PriorityClass, error) {
	all, err := r.list(ctx, p.objects, priorityClasses, "")
	if err != nil {
		return nil, err
	}
	var out *schedulingv1.PriorityClass
	for _, o := range all {
		if class := o.(*schedulingv1.PriorityClass); class.GlobalDefault && (out == nil || class.Value < out.Value) {
			out = class
		}
	}
	return out, nil
}

// Validate implements Validator.
func (p priority) Validate(ctx context.Context, r *Request) error {
	class, ok := r.Object.(*schedulingv1.PriorityClass)
	if !ok || !class.GlobalDefault {
		return nil
	}
	present, err := p.defaultClass(ctx, r)
	if err != nil || present == nil || present.Name == class.Name {
		return err
	}
	return refused(r, "PriorityClass %v is already marked as default. Only one default can exist", present.Name)
}
