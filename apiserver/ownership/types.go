package ownership

import (
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensionconfigurations "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/apiserver/registry"
)

// typesOf returns what knows the fields of a row's objects. The caller holds mu.
func (t *Tracker) typesOf(r *registry.Resource) (managedfields.TypeConverter, error) {
	switch row := t.row(r); {
	case row.types != nil:
		return row.types, nil
	case r.Group == apiextensionsv1.GroupName: // whose types client-go does not have
		return extensionconfigurations.NewTypeConverter(t.table.Scheme()), nil
	case r.Model == nil && r.Group != apiregistrationv1.GroupName: // whose types nobody has
		return t.loadTypes(), nil
	default:
		types, err := t.ownTypes(r)
		row.types = types
		return types, err
	}
}

// loadTypes parses the schema of all built-in types, the first time. The caller holds mu.
func (t *Tracker) loadTypes() managedfields.TypeConverter {
	if t.builtIns == nil {
		t.builtIns = applyconfigurations.NewTypeConverter(t.table.Scheme())
	}
	return t.builtIns
}

// ownTypes are made of the schema of a row, or of those of a custom resource in all its versions: who owns what is noted in
// any of them.
func (t *Tracker) ownTypes(r *registry.Resource) (managedfields.TypeConverter, error) {
	if r.Model == nil {
		return managedfields.NewTypeConverter(t.schemas.Models(r.New()), false)
	}
	rows := []*registry.Resource{r}
	for _, other := range t.table.Resources() {
		if other != r && other.GroupResource() == r.GroupResource() {
			rows = append(rows, other)
		}
	}
	models, err := t.schemas.CustomModels(rows)
	if err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(models, false)
}

// creater makes empty objects of a row, as a field manager wants them.
type creater struct{ r *registry.Resource }

// New implements runtime.ObjectCreater.
func (c creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := c.r.New()
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}

// defaulter is the row's defaulting, as a field manager wants it.
type defaulter struct{ r *registry.Resource }

// Default implements runtime.ObjectDefaulter.
func (d defaulter) Default(obj runtime.Object) {
	if reflect.TypeOf(obj) == reflect.TypeOf(d.r.New()) && (d.r.Model == nil || obj.GetObjectKind().GroupVersionKind() == d.r.GroupVersionKind()) {
		d.r.Default(obj)
	}
}
