package ownership

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/registry"
)

// versions converts between the versions in which a resource is served, for its field managers: each entry of
// managedFields names fields as they are called in the version that its request was made in, while the object at hand is
// in another. (autoscaling/v1 and v2 are one kind, as are the events of two groups.)
type versions struct {
	table    *registry.Table
	resource string
}

var _ runtime.ObjectConvertor = versions{}

// ConvertToVersion implements runtime.ObjectConvertor. Its result names its kind; it may be in itself.
func (v versions) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	kind, err := v.kindOf(in)
	if err != nil {
		return nil, err
	}
	wanted, ok := to.(schema.GroupVersion)
	if !ok {
		return nil, fmt.Errorf("conversion of %s to %T", kind, to)
	}
	from, target := v.table.ByKind(kind), v.table.Lookup(wanted.WithResource(v.resource))
	if from == nil || target == nil || from.Prefix != target.Prefix {
		return nil, runtime.NewNotRegisteredErrForKind("the resource table", wanted.WithKind(kind.Kind)) // the entry is dropped
	}
	out, err := typed(from, in)
	if err == nil && from == target {
		out.GetObjectKind().SetGroupVersionKind(kind)
		return out, nil
	}
	if err == nil && from.ToHub != nil {
		out, err = from.ToHub(out)
	}
	if err == nil && target.FromHub != nil {
		out, err = target.FromHub(out)
	}
	if err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(target.GroupVersionKind())
	return out, nil
}

// kindOf is the kind that obj names, or, for one that names none, that of its type.
func (v versions) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if kind := obj.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		return kind, nil
	}
	kinds, _, err := v.table.Scheme().ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return kinds[0], nil
}

// typed is obj as the Go type of its row. Field managers hand out what they have merged without one.
func typed(row *registry.Resource, obj runtime.Object) (runtime.Object, error) {
	fields, ok := obj.(*unstructured.Unstructured)
	if !ok || row.Model != nil {
		return obj, nil
	}
	out := row.New()
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Object, out)
}

// Convert implements runtime.ObjectConvertor; field managers do not use it.
func (v versions) Convert(_, _, _ any) error { return fmt.Errorf("conversion into an object at hand") }

// ConvertFieldLabel implements runtime.ObjectConvertor; field managers do not use it.
func (v versions) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
