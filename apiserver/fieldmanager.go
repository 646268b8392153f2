package apiserver

import (
	"maps"
	"reflect"
	"strings"
	"sync"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensionconfigurations "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/apiserver/openapi"
	"kontiki/apiserver/registry"
)

// ownership tracks who set which field, in metadata.managedFields, and merges what server-side apply
// sends (https://kubernetes.io/docs/reference/using-api/server-side-apply/). There is one field
// manager for each resource and subresource, made when first needed.
type ownership struct {
	table *registry.Table
	base  *openapi.Base

	mu       sync.Mutex // guards all below
	types    managedfields.TypeConverter
	managers map[managerKey]*managedfields.FieldManager
	custom   map[*registry.Resource]managedfields.TypeConverter // of custom resources, and of APIServices
	created  map[*registry.Resource]*createdFields
}

type managerKey struct {
	resource    *registry.Resource
	subresource string
}

func newOwnership(table *registry.Table) *ownership {
	return &ownership{
		table:    table,
		base:     openapi.NewBase(table),
		managers: map[managerKey]*managedfields.FieldManager{},
		created:  map[*registry.Resource]*createdFields{},
		custom:   map[*registry.Resource]managedfields.TypeConverter{},
	}
}

// manager returns the field manager of a resource or subresource.
func (o *ownership) manager(r *registry.Resource, subresource string) (*managedfields.FieldManager, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := managerKey{r, subresource}
	if m := o.managers[key]; m != nil {
		return m, nil
	}
	m, err := o.newManager(r, subresource)
	if err != nil {
		return nil, err
	}
	o.managers[key] = m
	return m, nil
}

// newManager makes the field manager of a resource or subresource. The caller holds mu.
func (o *ownership) newManager(r *registry.Resource, subresource string) (*managedfields.FieldManager, error) {
	gvk := r.GroupVersionKind()
	converter, reset := versions{o.table, r.Resource}, resetFields(r, subresource)
	types, err := o.typesOf(r)
	if err != nil {
		return nil, err
	}
	if r.Model != nil {
		return managedfields.NewDefaultCRDFieldManager(types, converter, rowDefaulter{r}, rowCreater{r}, gvk, gvk.GroupVersion(), subresource, reset)
	}
	return managedfields.NewDefaultFieldManager(types, converter, rowDefaulter{r}, o.table.Scheme(), gvk, gvk.GroupVersion(), subresource, reset)
}

// typesOf returns what knows the fields of a row's objects. The caller holds mu.
func (o *ownership) typesOf(r *registry.Resource) (managedfields.TypeConverter, error) {
	switch {
	case r.Group == apiextensionsv1.GroupName: // whose types client-go does not have
		return extensionconfigurations.NewTypeConverter(o.table.Scheme()), nil
	case r.Model == nil && r.Group != apiregistrationv1.GroupName: // whose types nobody has
		return o.loadTypes(), nil
	case o.custom[r] == nil:
		types, err := o.customTypes(r)
		if err != nil {
			return nil, err
		}
		o.custom[r] = types
	}
	return o.custom[r], nil
}

// typesFor is typesOf for others.
func (o *ownership) typesFor(r *registry.Resource) (managedfields.TypeConverter, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.typesOf(r)
}

// customTypes are the schemas of a custom resource in all its versions: who owns what is noted in any of them.
func (o *ownership) customTypes(r *registry.Resource) (managedfields.TypeConverter, error) {
	if r.Model == nil {
		return managedfields.NewTypeConverter(o.base.Models(r.New()), false)
	}
	rows := []*registry.Resource{r}
	for _, other := range o.table.Resources() {
		if other != r && other.GroupResource() == r.GroupResource() {
			rows = append(rows, other)
		}
	}
	models, err := o.base.CustomModels(rows)
	if err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(models, false)
}

// forget drops the field managers of a row that has left the table for good.
func (o *ownership) forget(r *registry.Resource) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.custom, r)
	delete(o.created, r)
	maps.DeleteFunc(o.managers, func(key managerKey, _ *managedfields.FieldManager) bool { return key.resource == r })
}

// rowCreater makes empty objects of a row, as a field manager wants them.
type rowCreater struct{ r *registry.Resource }

// New implements runtime.ObjectCreater.
func (c rowCreater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := c.r.New()
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}

// loadTypes parses the schema of all built-in types, the first time. The caller holds mu.
func (o *ownership) loadTypes() managedfields.TypeConverter {
	if o.types == nil {
		o.types = applyconfigurations.NewTypeConverter(o.table.Scheme())
	}
	return o.types
}

// converter knows the fields of all built-in types.
func (o *ownership) converter() managedfields.TypeConverter {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.loadTypes()
}

// warmUp does ahead of time what the first write would have to wait for.
func (o *ownership) warmUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loadTypes()
}

// rowDefaulter is the row's defaulting, as a field manager wants it.
type rowDefaulter struct{ r *registry.Resource }

// Default implements runtime.ObjectDefaulter.
func (d rowDefaulter) Default(obj runtime.Object) {
	if reflect.TypeOf(obj) == reflect.TypeOf(d.r.New()) && (d.r.Model == nil || obj.GetObjectKind().GroupVersionKind() == d.r.GroupVersionKind()) {
		setDefaults(d.r, obj)
	}
}

// track notes in next.metadata.managedFields what the manager changes from live to next. live may be
// an empty object; neither it nor anything in it is shared with others.
func (s *Server) track(t *target, live, next runtime.Object, manager string) (runtime.Object, error) {
	m, err := s.ownership.manager(t.resource, t.subName())
	if err != nil {
		return nil, err
	}
	kind := t.resource.GroupVersionKind()
	live.GetObjectKind().SetGroupVersionKind(kind)
	next.GetObjectKind().SetGroupVersionKind(kind)
	return m.UpdateNoErrors(live, next, manager), nil
}

// createdFields returns what finds the fields of new objects of a resource.
func (o *ownership) createdFields(r *registry.Resource) (*createdFields, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.created[r]; c != nil {
		return c, nil
	}
	types, err := o.typesOf(r)
	if err != nil {
		return nil, err
	}
	c, err := newCreatedFields(r, types)
	if err == nil {
		o.created[r] = c
	}
	return c, err
}

// trackNew notes in obj.metadata.managedFields what the manager sets in a new object.
func (s *Server) trackNew(t *target, obj runtime.Object, manager string) (runtime.Object, error) {
	if m := accessor(obj); len(m.GetManagedFields()) == 0 {
		fields, err := s.ownership.createdFields(t.resource)
		if err != nil {
			return nil, err
		}
		obj.GetObjectKind().SetGroupVersionKind(t.resource.GroupVersionKind())
		if entries, err := fields.entries(obj, manager); err == nil {
			m.SetManagedFields(entries)
			return obj, nil
		}
	}
	return s.track(t, t.resource.New(), obj, manager)
}

// managerName is the fieldManager parameter, or what can be told from the user agent: "kubectl" of
// "kubectl/v1.37.2 (linux/amd64)".
func managerName(asked, userAgent string) string {
	if asked != "" {
		return asked
	}
	prefix, _, _ := strings.Cut(userAgent, "/")
	var out strings.Builder
	for _, char := range prefix {
		if out.Len()+len(string(char)) > validation.FieldManagerMaxLength {
			break
		}
		if unicode.IsPrint(char) {
			out.WriteRune(char)
		}
	}
	return out.String()
}

// keepTimestamps undoes a change that is nothing but newer times in managedFields, so that a write
// that changes nothing stays free (AP-12).
func keepTimestamps(next, old runtime.Object) {
	nextMeta, err := meta.Accessor(next)
	if err != nil {
		return
	}
	oldMeta, err := meta.Accessor(old)
	if err != nil {
		return
	}
	was, is := oldMeta.GetManagedFields(), nextMeta.GetManagedFields()
	if len(was) != len(is) || len(is) == 0 {
		return
	}
	for i := range is {
		if !sameEntry(was[i], is[i]) {
			return
		}
	}
	nextMeta.SetManagedFields(was)
	if !equality.Semantic.DeepEqual(next, old) {
		nextMeta.SetManagedFields(is)
	}
}

func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	a.Time, b.Time = nil, nil
	return reflect.DeepEqual(a, b)
}
