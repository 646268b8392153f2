package registry

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pointer constrains P to be *T and an API object, so that rows can be declared by their Go types.
type pointer[T any] interface {
	*T
	runtime.Object
}

// newRow starts a namespaced row with the names that follow from kind and plural. What differs is
// set on the result.
func newRow[T, L any, P pointer[T], PL pointer[L]](gv schema.GroupVersion, plural, kind string) *Resource {
	return &Resource{
		GroupVersionResource: gv.WithResource(plural),
		Singular:             strings.ToLower(kind),
		Kind:                 kind,
		Namespaced:           true,
		New:                  func() runtime.Object { return P(new(T)) },
		NewList:              func() runtime.Object { return PL(new(L)) },
		Prefix:               "/registry/" + plural,
	}
}

// newUnlisted starts the row of a kind that has no list type.
func newUnlisted[T any, P pointer[T]](gv schema.GroupVersion, plural, kind string) *Resource {
	r := newRow[T, metav1.PartialObjectMetadataList, P](gv, plural, kind)
	r.NewList = nil
	return r
}

// The funcs of a row take runtime.Object. These adapters let them be written for one Go type.

func defaulter[T runtime.Object](f func(T)) func(runtime.Object) {
	return func(obj runtime.Object) { f(obj.(T)) }
}

func preparer[T runtime.Object](f func(T)) func(context.Context, runtime.Object) {
	return func(_ context.Context, obj runtime.Object) { f(obj.(T)) }
}

func updatePreparer[T runtime.Object](f func(obj, old T)) func(ctx context.Context, obj, old runtime.Object) {
	return func(_ context.Context, obj, old runtime.Object) { f(obj.(T), old.(T)) }
}

func validator[T runtime.Object](f func(T) field.ErrorList) func(context.Context, runtime.Object) field.ErrorList {
	return func(_ context.Context, obj runtime.Object) field.ErrorList { return f(obj.(T)) }
}

func updateValidator[T runtime.Object](f func(obj, old T) field.ErrorList) func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return func(_ context.Context, obj, old runtime.Object) field.ErrorList { return f(obj.(T), old.(T)) }
}

func fieldSet[T runtime.Object](f func(T) fields.Set) func(runtime.Object) fields.Set {
	return func(obj runtime.Object) fields.Set { return f(obj.(T)) }
}

func cells[T runtime.Object](f func(obj T, now time.Time) []any) func(runtime.Object, time.Time) []any {
	return func(obj runtime.Object, now time.Time) []any { return f(obj.(T), now) }
}

// statusOf makes the status subresource of r. keep copies from old what a status write may not
// change; labels and annotations may be written through status, as in Kubernetes.
func statusOf[T runtime.Object](r *Resource, keep func(obj, old T)) Subresource {
	return Subresource{
		Name:   "status",
		Kind:   r.GroupVersionKind(),
		New:    r.New,
		Verbs:  []string{"get", "patch", "update"},
		Update: updatePreparer(keep),
		Resets: []string{"spec"},
	}
}

// sealed is for a status whose writers may not touch the metadata.
func sealed(s Subresource) Subresource {
	keep := s.Update
	s.Resets = append(s.Resets, "metadata")
	s.Update = func(ctx context.Context, obj, old runtime.Object) {
		keep(ctx, obj, old)
		metav1.ResetObjectMetaForStatus(obj.(metav1.Object), old.(metav1.Object)) // every object of a row is one
	}
	return s
}

// judged gives s a validation of its own, which sees only the new object.
func judged[T runtime.Object](s Subresource, check func(T) field.ErrorList) Subresource {
	s.Validate = func(_ context.Context, obj, _ runtime.Object) field.ErrorList { return check(obj.(T)) }
	return s
}

// unjudged is for a status that nothing is checked of yet beyond its metadata.
func unjudged(s Subresource) Subresource {
	s.Validate = func(context.Context, runtime.Object, runtime.Object) field.ErrorList { return nil }
	return s
}

// connectTo makes a subresource that streams to the node of the object.
func connectTo(name, optionsKind string, verbs ...string) Subresource {
	return Subresource{
		Name:    name,
		Kind:    schema.GroupVersionKind{Version: "v1", Kind: optionsKind},
		Verbs:   verbs,
		Connect: true,
	}
}
