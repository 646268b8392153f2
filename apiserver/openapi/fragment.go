package openapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"kontiki/apiserver/registry"
)

// A fragment is what one custom resource adds to a document: its paths, and the definitions of its kind and of the lists
// of it. It is encoded when a document with it is first asked for, and kept as long as its definition is as it was;
// so a document is as many fragments after one another, and a change costs the fragments that have changed.
type fragment struct {
	paths, definitions part           // members of JSON objects, each after a comma
	refers             []reflect.Type // to their definitions, which the document brings

	once  sync.Once // makes what follows
	proto part
	err   error
}

// fragmentKey is equal for rows of which a document says the same. It is not the row, so that nothing else of a row
// that has gone is kept.
type fragmentKey struct {
	schema.GroupVersionResource
	digest string
}

func keyOf(r *registry.Resource) fragmentKey { return fragmentKey{r.GroupVersionResource, r.Digest} }

// isCustom tells the rows that come and go, and bring their own schema.
func isCustom(r *registry.Resource) bool { return r.Model != nil }

// newFragment describes a row.
func (d dialect) newFragment(r *registry.Resource) (*fragment, error) {
	s := &schemas{dialect: d, byName: map[string]spec.Schema{}, refers: map[reflect.Type]bool{}}
	paths := map[string]any{}
	for _, e := range endpointsOf(r) {
		paths[e.path] = s.path(e)
	}
	out := &fragment{}
	for t := range s.refers {
		out.refers = append(out.refers, t)
	}
	var err error
	if out.paths, err = membersPart(paths); err != nil {
		return nil, err
	}
	out.definitions, err = membersPart(s.byName)
	return out, err
}

// membersPart encodes an object to be put into another one, after members of that.
func membersPart[T any](members map[string]T) (part, error) {
	data, err := json.Marshal(members)
	if err != nil || len(members) == 0 {
		return newPart(nil), err
	}
	data[0] = ','
	return newPart(data[:len(data)-1]), nil
}

// protobuf is the fragment as a document of its own. In protobuf a message is merged with what follows it by being
// followed by it (https://protobuf.dev/programming-guides/encoding/#last-one-wins): repeated fields, as paths and
// definitions are, are joined.
func (f *fragment) protobuf(d dialect) (part, error) {
	f.once.Do(func() {
		open, err := d.frame(nil, nil)
		if err != nil {
			f.err = err
			return
		}
		whole := slices.Concat(open.head, withoutComma(f.paths), open.middle, withoutComma(f.definitions), open.end)
		f.proto, f.err = d.protobuf(whole)
	})
	return f.proto, f.err
}

func withoutComma(p part) []byte {
	if p.size == 0 {
		return nil
	}
	return parts{p}.bytes()[1:]
}

// protobuf encodes a document.
func (d dialect) protobuf(document []byte) (part, error) {
	plain, err := d.encode(document)
	if err != nil {
		return part{}, err
	}
	return newPart(plain), nil
}
