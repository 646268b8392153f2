package registry

import (
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scaled is what kinds with a scale subresource have in common.
type scaled struct {
	meta     *metav1.ObjectMeta
	replicas **int32 // where spec.replicas is
	current  int32   // status.replicas
	selector *metav1.LabelSelector
}

// scale makes the scale subresource of a kind whose parts view finds.
func scale(view func(runtime.Object) scaled) Subresource {
	s := ScaleSubresource()
	s.Project.Get = func(parent runtime.Object) (runtime.Object, error) { return view(parent).get() }
	s.Project.Set = func(parent, body runtime.Object) error { return view(parent).set(body.(*autoscalingv1.Scale)) }
	return s
}

// ScaleSubresource is what the scale subresources of all kinds have in common; Get and Set of its Project are to be set.
func ScaleSubresource() Subresource {
	return Subresource{
		Name:    "scale",
		Kind:    autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
		New:     func() runtime.Object { return &autoscalingv1.Scale{} },
		Verbs:   []string{"get", "patch", "update"},
		Project: &Projection{Row: scaleRow()},
	}
}

func scaleRow() *Resource {
	r := &Resource{Columns: columns([]string{"Name", "Desired:integer", "Available:integer", "Age"})}
	r.Columns[0].Format = "" // Kubernetes forgets it
	r.Columns[1].Description = autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]
	r.Columns[2].Description = autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]
	r.Row = cells(func(s *autoscalingv1.Scale, now time.Time) []any {
		return []any{s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), age(&s.ObjectMeta, now)}
	})
	return r
}

func (s scaled) get() (*autoscalingv1.Scale, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.selector)
	if err != nil {
		return nil, fmt.Errorf("scale of %s: selector: %w", s.meta.Name, err)
	}
	out := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              s.meta.Name,
			Namespace:         s.meta.Namespace,
			UID:               s.meta.UID,
			ResourceVersion:   s.meta.ResourceVersion,
			CreationTimestamp: s.meta.CreationTimestamp,
		},
		Status: autoscalingv1.ScaleStatus{Replicas: s.current, Selector: selector.String()},
	}
	if *s.replicas != nil {
		out.Spec.Replicas = **s.replicas
	}
	return out, nil
}

// set writes the wanted number of replicas back. A resourceVersion in the body is the caller's
// precondition; the generic path checks it.
func (s scaled) set(body *autoscalingv1.Scale) error {
	if body.Spec.Replicas < 0 {
		fault := field.Invalid(field.NewPath("spec", "replicas"), body.Spec.Replicas, "must be greater than or equal to 0")
		return apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), body.Name, field.ErrorList{fault})
	}
	*s.replicas = new(body.Spec.Replicas)
	return nil
}
