package apiserver

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/admission/dynamic"
	"kontiki/apiserver/registry"
)

// kinds is the table as webhooks and policies need it: which rows serve the same objects, and how one becomes another.
type kinds struct {
	table *registry.Table
	cache atomic.Pointer[equivalents]
}

// equivalents are the rows that share their objects with others, of one state of the table.
type equivalents struct {
	version uint64
	of      map[schema.GroupVersionResource][]*registry.Resource
}

var _ dynamic.Versions = (*kinds)(nil)

func newKinds(table *registry.Table) *kinds { return &kinds{table: table} }

// Equivalents implements dynamic.Versions.
func (k *kinds) Equivalents(resource schema.GroupVersionResource, subresource string) []dynamic.Match {
	var out []dynamic.Match
	for _, row := range k.rows()[resource] {
		kind := row.GroupVersionKind()
		if subresource != "" {
			sub := row.Subresource(subresource)
			if sub == nil {
				continue
			}
			if sub.Kind.Kind != "" {
				kind = sub.Kind
			}
		}
		out = append(out, dynamic.Match{Resource: row.GroupVersionResource, Kind: kind})
	}
	return out
}

func (k *kinds) rows() map[schema.GroupVersionResource][]*registry.Resource {
	version := k.table.Version() // read first: what changes meanwhile has the cache made again
	if cached := k.cache.Load(); cached != nil && cached.version == version {
		return cached.of
	}
	byPrefix := map[string][]*registry.Resource{}
	for _, row := range k.table.Resources() {
		if row.Prefix != "" {
			byPrefix[row.Prefix] = append(byPrefix[row.Prefix], row)
		}
	}
	of := map[schema.GroupVersionResource][]*registry.Resource{}
	for _, same := range byPrefix {
		for _, row := range same {
			for _, other := range same {
				if other != row {
					of[row.GroupVersionResource] = append(of[row.GroupVersionResource], other)
				}
			}
		}
	}
	k.cache.Store(&equivalents{version, of})
	return of
}

// Convert implements dynamic.Versions.
func (k *kinds) Convert(obj runtime.Object, from, to schema.GroupVersionKind) (runtime.Object, error) {
	if from == to {
		if obj.GetObjectKind().GroupVersionKind() == to {
			return obj, nil
		}
		return withKind(obj, to), nil
	}
	source, target := k.table.ByKind(from), k.table.ByKind(to)
	if source == nil || target == nil || source.Prefix != target.Prefix {
		return nil, fmt.Errorf("a %s cannot be converted to %s", from, to)
	}
	var err error
	if source.ToHub != nil {
		if obj, err = source.ToHub(obj); err != nil {
			return nil, err
		}
	}
	if target.FromHub != nil {
		if obj, err = target.FromHub(obj); err != nil {
			return nil, err
		}
	}
	return withKind(obj, to), nil
}

// New implements dynamic.Versions.
func (k *kinds) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if row := k.table.ByKind(kind); row != nil {
		return row.New(), nil
	}
	return k.table.Scheme().New(kind) // what is posted to subresources
}

// Default implements dynamic.Versions.
func (k *kinds) Default(obj runtime.Object, kind schema.GroupVersionKind) {
	if row := k.table.ByKind(kind); row != nil && reflect.TypeOf(obj) == reflect.TypeOf(row.New()) {
		row.Default(obj)
	}
}
