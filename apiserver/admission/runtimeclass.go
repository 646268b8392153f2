package admission

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// runtimeClass takes over what the pod's RuntimeClass says of overhead and of the nodes that have the runtime.
type runtimeClass struct{ objects Objects }

var runtimeClasses = nodev1.SchemeGroupVersion.WithResource("runtimeclasses")

// Mutate implements Mutator.
func (c runtimeClass) Mutate(ctx context.Context, r *Request) error {
	pod := newPod(r)
	if pod == nil {
		return nil
	}
	class, err := c.classOf(ctx, r, pod)
	if err != nil || class == nil {
		return err
	}
	if class.Overhead != nil {
		if pod.Spec.Overhead == nil {
			pod.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
		}
	}
	if class.Scheduling != nil {
		return schedule(r, pod, class.Scheduling)
	}
	return nil
}

// schedule narrows the pod's choice of nodes to those of the class.
func schedule(r *Request, pod *corev1.Pod, s *nodev1.Scheduling) error {
	selector := maps.Clone(pod.Spec.NodeSelector)
	if selector == nil && len(s.NodeSelector) > 0 {
		selector = map[string]string{}
	}
	for key, value := range s.NodeSelector {
		if said, ok := selector[key]; ok && said != value {
			return refused(r, "conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, said)
		}
		selector[key] = value
	}
	pod.Spec.NodeSelector = selector
	for _, t := range s.Tolerations {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(o corev1.Toleration) bool { return equality.Semantic.DeepEqual(o, t) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
	return nil
}

// Validate implements Validator.
func (c runtimeClass) Validate(ctx context.Context, r *Request) error {
	pod := newPod(r)
	if pod == nil {
		return nil
	}
	class, err := c.classOf(ctx, r, pod)
	if err != nil {
		return err
	}
	switch {
	case class == nil || class.Overhead == nil:
		if pod.Spec.Overhead != nil {
			return refused(r, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
		}
	case !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead):
		return refused(r, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
	}
	return nil
}

// classOf is the class that the pod names; nil if it names none.
func (c runtimeClass) classOf(ctx context.Context, r *Request, pod *corev1.Pod) (*nodev1.RuntimeClass, error) {
	name := pod.Spec.RuntimeClassName
	if name == nil || *name == "" {
		return nil, nil
	}
	found, err := c.objects.Get(ctx, runtimeClasses, "", *name)
	if apierrors.IsNotFound(err) {
		return nil, refused(r, "pod rejected: RuntimeClass %q not found", *name)
	}
	if err != nil {
		return nil, err
	}
	return found.(*nodev1.RuntimeClass), nil
}
