package ownership

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"kontiki/apiserver/openapi"
	"kontiki/apiserver/registry"
)

// Tracker knows for every row of the table who comes to own what. It is safe for concurrent use.
type Tracker struct {
	table   *registry.Table
	schemas *openapi.Base

	mu       sync.Mutex // guards all below
	builtIns managedfields.TypeConverter
	rows     map[*registry.Resource]*row
	views    map[string]*managedfields.FieldManager // by the subresource's name
}

// row is what is kept for one row of the table, each part since it was first needed.
type row struct {
	types    managedfields.TypeConverter
	created  *createdFields
	managers map[string]*managedfields.FieldManager // by subresource
}

// New returns a Tracker for the rows of a table, whose schemas are as base says. It costs nothing yet.
func New(table *registry.Table, base *openapi.Base) *Tracker {
	return &Tracker{table: table, schemas: base, rows: map[*registry.Resource]*row{}, views: map[string]*managedfields.FieldManager{}}
}

// Update notes in next.metadata.managedFields what the manager changes from live to next, of a resource or of a subresource
// of it. live may be an empty object; neither it nor anything in it is shared with others.
func (t *Tracker) Update(r *registry.Resource, subresource string, live, next runtime.Object, manager string) (runtime.Object, error) {
	m, err := t.manager(r, subresource)
	if err != nil {
		return nil, err
	}
	kind := r.GroupVersionKind()
	live.GetObjectKind().SetGroupVersionKind(kind)
	next.GetObjectKind().SetGroupVersionKind(kind)
	return m.UpdateNoErrors(live, next, manager), nil
}

// Create notes in obj.metadata.managedFields what the manager sets in a new object.
func (t *Tracker) Create(r *registry.Resource, obj runtime.Object, manager string) (runtime.Object, error) {
	if m := metadata(obj); len(m.GetManagedFields()) == 0 {
		fields, err := t.createdFields(r)
		if err != nil {
			return nil, err
		}
		obj.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
		if entries, err := fields.entries(obj, manager); err == nil {
			m.SetManagedFields(entries)
			return obj, nil
		}
	}
	return t.Update(r, "", r.New(), obj, manager)
}

// Apply merges an applied configuration into live, an empty object if there is none yet. What others own and it would change
// is an API status error, a conflict, unless it is forced; any other error is about fields that the schema does not have.
func (t *Tracker) Apply(r *registry.Resource, subresource string, live, applied runtime.Object, manager string, force bool) (runtime.Object, error) {
	m, err := t.manager(r, subresource)
	if err != nil {
		return nil, err
	}
	live.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	return m.Apply(live, applied, manager, force)
}

// Types knows the fields of all built-in kinds that client-go has.
func (t *Tracker) Types() managedfields.TypeConverter {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loadTypes()
}

// TypesOf knows the fields of a row's objects.
func (t *Tracker) TypesOf(r *registry.Resource) (managedfields.TypeConverter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.typesOf(r)
}

// WarmUp does ahead of time what the first write would have to wait for: a few hundred milliseconds.
func (t *Tracker) WarmUp() { t.Types() }

// Forget drops what is kept for a row that has left the table for good.
func (t *Tracker) Forget(r *registry.Resource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rows, r)
}

// Rows are those that something is kept for. A test looks there for what should have been forgotten.
func (t *Tracker) Rows() []*registry.Resource {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.rows))
}

// row returns what is kept for r. The caller holds mu.
func (t *Tracker) row(r *registry.Resource) *row {
	if t.rows[r] == nil {
		t.rows[r] = &row{managers: map[string]*managedfields.FieldManager{}}
	}
	return t.rows[r]
}

// manager returns the field manager of a resource or subresource.
func (t *Tracker) manager(r *registry.Resource, subresource string) (*managedfields.FieldManager, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.row(r)
	if m := row.managers[subresource]; m != nil {
		return m, nil
	}
	m, err := t.newManager(r, subresource)
	if err == nil {
		row.managers[subresource] = m
	}
	return m, err
}

// newManager makes the field manager of a resource or subresource. The caller holds mu.
func (t *Tracker) newManager(r *registry.Resource, subresource string) (*managedfields.FieldManager, error) {
	gvk := r.GroupVersionKind()
	converter, reset := versions{t.table, r.Resource}, resetFields(r, subresource)
	types, err := t.typesOf(r)
	if err != nil {
		return nil, err
	}
	if r.Model != nil {
		return managedfields.NewDefaultCRDFieldManager(types, converter, defaulter{r}, creater{r}, gvk, gvk.GroupVersion(), subresource, reset)
	}
	return managedfields.NewDefaultFieldManager(types, converter, defaulter{r}, t.table.Scheme(), gvk, gvk.GroupVersion(), subresource, reset)
}

// createdFields returns what finds the fields of new objects of a resource.
func (t *Tracker) createdFields(r *registry.Resource) (*createdFields, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.row(r)
	if row.created != nil {
		return row.created, nil
	}
	types, err := t.typesOf(r)
	if err != nil {
		return nil, err
	}
	c, err := newCreatedFields(r, types)
	if err == nil {
		row.created = c
	}
	return c, err
}

// metadata is that of an object of the table.
func metadata(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(fmt.Sprintf("%T is in the resource table but has no metadata: %v", obj, err))
	}
	return m
}
