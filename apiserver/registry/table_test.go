package registry

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Every row has what the generic path relies on.
func TestRowsAreComplete(t *testing.T) {
	table := Builtin(Options{})
	prefixes := map[string]string{}
	for _, r := range table.Resources() {
		t.Run(r.GroupVersion().String()+"/"+r.Resource, func(t *testing.T) {
			require.Same(t, r, table.Lookup(r.GroupVersionResource))
			require.Same(t, r, table.ByKind(r.GroupVersionKind()))

			obj := r.New()
			require.Equal(t, r.GroupVersionKind(), kindOf(t, table, obj))
			require.Equal(t, slices.Equal(r.Verbs, []string{"create"}), r.NewList == nil, "all but questions can be listed")
			if r.NewList != nil {
				list := r.NewList()
				require.Equal(t, r.GroupVersion().WithKind(r.Kind+"List"), kindOf(t, table, list))
				require.True(t, meta.IsListType(list))
			}
			require.Equal(t, obj, obj.DeepCopyObject())
			if r.Strategy.Default != nil { // defaults are idempotent, also on an empty object
				r.Strategy.Default(obj)
				once := obj.DeepCopyObject()
				r.Strategy.Default(obj)
				require.Equal(t, once, obj)
			}
			require.Equal(t, r.Answers != nil, r.Prefix == "", "either stored or answered")
			if r.Hub == nil && r.Answers == nil {
				require.Empty(t, prefixes[r.Prefix], "two kinds under %s", r.Prefix)
				prefixes[r.Prefix] = r.Resource
			}
			checkColumns(t, r)
			checkSubresources(t, table, r)
			if r.Fields != nil {
				require.Equal(t, keys(r.Fields(r.New())), keys(r.Fields(obj)))
			}
		})
	}
}

// The option kinds are known under every group that clients name them by.
func TestOptionKinds(t *testing.T) {
	scheme := Builtin(Options{}).Scheme()
	for _, gv := range []schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}, metav1.SchemeGroupVersion} {
		require.True(t, scheme.Recognizes(gv.WithKind("DeleteOptions")), gv)
	}
	for _, kind := range []string{"Table", "PartialObjectMetadata", "PartialObjectMetadataList"} {
		require.True(t, scheme.Recognizes(metav1.SchemeGroupVersion.WithKind(kind)), kind)
	}
	require.True(t, scheme.Recognizes(schema.GroupVersionKind{Version: "v1", Kind: "Status"}))
}

func kindOf(t *testing.T, table *Table, obj runtime.Object) schema.GroupVersionKind {
	kinds, _, err := table.Scheme().ObjectKinds(obj)
	require.NoError(t, err)
	return kinds[0]
}

func checkColumns(t *testing.T, r *Resource) {
	if r.Row == nil {
		require.Empty(t, r.Columns)
		return
	}
	obj := r.New()
	if r.Strategy.Default != nil {
		r.Strategy.Default(obj)
	}
	require.Len(t, r.Row(obj, time.Now()), len(r.Columns))
	require.Len(t, r.Row(r.New(), time.Now()), len(r.Columns), "an object that was never defaulted")
	require.True(t, slices.ContainsFunc(r.Columns, func(c metav1.TableColumnDefinition) bool { return c.Name == "Name" }))
}

func checkSubresources(t *testing.T, table *Table, r *Resource) {
	for _, s := range r.Subresources {
		ways := 0
		for _, set := range []bool{s.Update != nil, s.Project != nil, s.Create != nil, s.Answer != nil, s.Connect} {
			if set {
				ways++
			}
		}
		require.Equal(t, 1, ways, s.Name)
		require.NotEmpty(t, s.Verbs, s.Name)
		require.Equal(t, s.Connect, s.New == nil, s.Name)
		if s.New != nil {
			require.Equal(t, s.Kind, kindOf(t, table, s.New()), s.Name)
		}
	}
}

func keys(set map[string]string) []string {
	var out []string
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Rows come and go while readers look; each reader sees all or none of a change.
func TestTableChangesAtOnce(t *testing.T) {
	table := Builtin(Options{})
	row := func(name string) *Resource {
		return &Resource{GroupVersionResource: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: name}, Kind: name}
	}
	a, b := row("a"), row("b")
	done := make(chan struct{})
	var readers sync.WaitGroup
	torn := make(chan string, 1)
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				seen := table.Resources()
				if slices.Contains(seen, a) != slices.Contains(seen, b) {
					select {
					case torn <- "a reader saw half of a change":
					default:
					}
				}
			}
		})
	}
	version := table.Version()
	for range 200 {
		require.NoError(t, table.Add(a, b))
		require.NoError(t, table.Replace([]*Resource{a, b}, nil))
	}
	close(done)
	readers.Wait()
	require.Empty(t, torn)
	require.Equal(t, version+400, table.Version())

	require.NoError(t, table.Add(a))
	require.ErrorIs(t, table.Add(b, a), ErrDuplicateRow)
	require.Nil(t, table.Lookup(b.GroupVersionResource), "a refused Add must add nothing")
}
