package ownership

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kontiki/apiserver/registry"
)

// Who owns the fields of a view (registry.Projection): a scale's spec.replicas is its parent's, and whoever owns it there
// owns it here. So a view gets the owners of its parent, in its own words, before it is changed, and what has become of
// them goes back to the parent after.

// ViewOwners translates between the owners of a view, a subresource of r, and those of live, its parent.
func ViewOwners(r *registry.Resource, sub *registry.Subresource, live runtime.Object) *managedfields.ScaleHandler {
	gv := r.GroupVersion()
	var path []any
	for _, step := range sub.Project.Replicas {
		path = append(path, step)
	}
	if path == nil {
		path = []any{"spec", "replicas"}
	}
	return managedfields.NewScaleHandler(metadata(live).GetManagedFields(), gv, managedfields.ResourcePathMappings{
		gv.String(): fieldpath.MakePathOrDie(path...),
	})
}

// UpdateView notes in next's managedFields what the manager changes from view to next. Both name their kind.
func (t *Tracker) UpdateView(sub *registry.Subresource, view, next runtime.Object, manager string) (runtime.Object, error) {
	m, err := t.viewManager(sub)
	if err != nil {
		return nil, err
	}
	return m.UpdateNoErrors(view, next, manager), nil
}

// ApplyView merges an applied configuration into a view, which names its kind. Its errors are those of Apply.
func (t *Tracker) ApplyView(sub *registry.Subresource, view, applied runtime.Object, manager string, force bool) (runtime.Object, error) {
	m, err := t.viewManager(sub)
	if err != nil {
		return nil, err
	}
	return m.Apply(view, applied, manager, force)
}

// viewManager returns the field manager of a subresource that is a view, whatever its parent.
func (t *Tracker) viewManager(sub *registry.Subresource) (*managedfields.FieldManager, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.views[sub.Name]; m != nil {
		return m, nil
	}
	// client-go's schema has no views, which nobody but the server merges.
	types, err := managedfields.NewTypeConverter(t.schemas.Models(sub.New()), false)
	if err != nil {
		return nil, err
	}
	m, err := managedfields.NewDefaultFieldManager(types, viewVersion{sub}, noDefaults{}, t.table.Scheme(), sub.Kind,
		sub.Kind.GroupVersion(), sub.Name, nil)
	if err == nil {
		t.views[sub.Name] = m
	}
	return m, err
}

// viewVersion is the one version of a view, for its field manager.
type viewVersion struct{ sub *registry.Subresource }

// ConvertToVersion implements runtime.ObjectConvertor: to a view's Go type, which field managers leave.
func (v viewVersion) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	if wanted, ok := to.(schema.GroupVersion); !ok || wanted != v.sub.Kind.GroupVersion() {
		return nil, runtime.NewNotRegisteredErrForKind("the view "+v.sub.Name, v.sub.Kind) // the entry is dropped
	}
	fields, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	out := v.sub.New()
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Object, out)
}

// Convert implements runtime.ObjectConvertor; field managers do not use it.
func (v viewVersion) Convert(in, out, hint any) error { return versions{}.Convert(in, out, hint) }

// ConvertFieldLabel implements runtime.ObjectConvertor; field managers do not use it.
func (v viewVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// noDefaults: a view has none.
type noDefaults struct{}

// Default implements runtime.ObjectDefaulter.
func (noDefaults) Default(runtime.Object) {}
