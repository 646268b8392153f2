package registry

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Table holds the rows. Readers never block: they see one immutable snapshot, which Replace
// replaces as a whole. Custom resources come and go this way while requests are being served.
type Table struct {
	scheme *runtime.Scheme

	writes sync.Mutex // serialises Replace; never held while reading
	now    atomic.Pointer[rows]
}

// rows is one state of the table. Nothing in it changes once it is published.
type rows struct {
	version uint64
	list    []*Resource
	byGVR   map[schema.GroupVersionResource]*Resource
	byGVK   map[schema.GroupVersionKind]*Resource
}

// NewTable returns an empty table whose built-in types are those of scheme.
func NewTable(scheme *runtime.Scheme) *Table {
	t := &Table{scheme: scheme}
	t.now.Store(&rows{
		byGVR: map[schema.GroupVersionResource]*Resource{},
		byGVK: map[schema.GroupVersionKind]*Resource{},
	})
	return t
}

// Scheme knows the Go types of the built-in rows, of their subresources and of the meta API. It must
// not be changed. Custom resources are unstructured and not in it.
func (t *Table) Scheme() *runtime.Scheme { return t.scheme }

// Resources returns every row, in the order they were added. The slice must not be changed.
func (t *Table) Resources() []*Resource { return t.now.Load().list }

// Lookup returns the row that serves gvr, or nil.
func (t *Table) Lookup(gvr schema.GroupVersionResource) *Resource { return t.now.Load().byGVR[gvr] }

// ByKind returns the row whose objects are of gvk, or nil.
func (t *Table) ByKind(gvk schema.GroupVersionKind) *Resource { return t.now.Load().byGVK[gvk] }

// Version grows with every Replace, so that what is derived from the table can be cached.
func (t *Table) Version() uint64 { return t.now.Load().version }

// Add appends rows, all or none. The rows must not be changed afterwards.
// The error is ErrDuplicateRow if the table has a row for one of the resources or kinds.
func (t *Table) Add(added ...*Resource) error { return t.Replace(nil, added) }

// Replace takes rows out of the table and appends others, in one step: no reader sees anything in between. Those that
// are not in the table are passed over; requests that found a row before may still use it. The error is that of Add.
func (t *Table) Replace(gone, added []*Resource) error {
	t.writes.Lock()
	defer t.writes.Unlock()
	next := t.now.Load().clone()
	for _, r := range gone {
		if next.byGVR[r.GroupVersionResource] == r {
			next.remove(r)
		}
	}
	for _, r := range added {
		gvr, gvk := r.GroupVersionResource, r.GroupVersionKind()
		if next.byGVR[gvr] != nil || next.byGVK[gvk] != nil {
			return fmt.Errorf("add %v (%s): %w", gvr, r.Kind, ErrDuplicateRow)
		}
		next.byGVR[gvr], next.byGVK[gvk] = r, r
		next.list = append(next.list, r)
	}
	t.now.Store(next)
	return nil
}

func (r *rows) remove(gone *Resource) {
	delete(r.byGVR, gone.GroupVersionResource)
	delete(r.byGVK, gone.GroupVersionKind())
	r.list = slices.DeleteFunc(r.list, func(other *Resource) bool { return other == gone })
}

func (r *rows) clone() *rows {
	return &rows{
		version: r.version + 1,
		list:    slices.Clone(r.list),
		byGVR:   maps.Clone(r.byGVR),
		byGVK:   maps.Clone(r.byGVK),
	}
}
