package openapi

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"kontiki/apiserver/registry"
)

// customRow is one whose definition says something, and counts how often it is asked.
func customRow(group, kind, plural, says string, asked *atomic.Int64) *registry.Resource {
	return &registry.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural},
		Kind:                 kind, Digest: says, Prefix: "/registry/" + group + "/" + plural,
		New:     func() runtime.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
		Model: func(bool, func(reflect.Type) spec.Schema) (*spec.Schema, error) {
			asked.Add(1)
			out := object()
			return out.WithDescription(says), nil
		},
	}
}

func (d *document) object(t *testing.T) (out map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(d.json.bytes(), &out))
	return out
}

// Both documents are those of the rows of the moment, however they got there, and a change costs what has changed.
func TestDocumentsFollowFragments(t *testing.T) {
	table := registry.Builtin(registry.Options{})
	base := NewBase(table)
	two, three := newCache(v2, table, base), newCache(v3, table, base)
	var asked atomic.Int64
	boat, raft := customRow("example.com", "Boat", "boats", "a boat", &asked), customRow("example.com", "Raft", "rafts", "a raft", &asked)
	odd := customRow("core.api.k8s.io", "Pod", "pods", "not a pod", &asked)
	hashes := map[string]bool{}
	check := func(rows ...*registry.Resource) {
		t.Helper()
		all, err := two.get(everything)
		require.NoError(t, err)
		require.False(t, hashes[all.hash], "another document has another hash")
		hashes[all.hash] = true
		document := all.object(t)
		definitions := document["definitions"].(map[string]any)
		require.NotContains(t, fmt.Sprint(definitions["io.k8s.api.core.v1.Pod"]), "not a pod")
		found := &openapi_v2.Document{}
		encoded, err := all.protobuf()
		require.NoError(t, err)
		require.NoError(t, proto.Unmarshal(encoded.bytes(), found))
		require.Len(t, found.Definitions.AdditionalProperties, len(definitions))
		require.Len(t, found.Paths.Path, len(document["paths"].(map[string]any)))
		for _, r := range rows {
			name := customKind{row: r}.name()
			require.Equal(t, r.Digest, definitions[name].(map[string]any)["description"], name)
			require.Contains(t, definitions, customKind{row: r, list: true}.name())
			require.Contains(t, document["paths"], rootOf(r.GroupVersion())+"/"+r.Resource)
			require.Contains(t, document["paths"], rootOf(r.GroupVersion())+"/")

			one, err := three.get(pathOf(r.GroupVersion()))
			require.NoError(t, err)
			schemas := one.object(t)["components"].(map[string]any)["schemas"].(map[string]any)
			require.Equal(t, r.Digest, schemas[name].(map[string]any)["description"])
			require.Contains(t, schemas, "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")
			encoded, err := one.protobuf()
			require.NoError(t, err)
			found := &openapi_v3.Document{}
			require.NoError(t, proto.Unmarshal(encoded.bytes(), found))
			require.Len(t, found.Components.Schemas.AdditionalProperties, len(schemas))
		}
	}
	check()
	require.NoError(t, table.Add(boat, raft, odd))
	check(boat, raft, odd)
	require.EqualValues(t, 6, asked.Load())

	changed := customRow("example.com", "Boat", "boats", "another boat", &asked)
	require.NoError(t, table.Replace([]*registry.Resource{boat}, []*registry.Resource{changed}))
	check(changed, raft, odd)
	require.EqualValues(t, 8, asked.Load(), "of the others nothing is made anew")

	same := customRow("example.com", "Raft", "rafts", "a raft", &asked)
	require.NoError(t, table.Replace([]*registry.Resource{raft, changed, odd}, []*registry.Resource{same}))
	check(same)
	require.EqualValues(t, 8, asked.Load())
	require.Len(t, two.fragments, 1)
	require.NoError(t, table.Replace([]*registry.Resource{same}, nil))
	_, err := three.get("apis/example.com/v1")
	require.ErrorContains(t, err, "no such group version")
	_, err = two.get(everything)
	require.NoError(t, err)
	require.Empty(t, two.fragments)
	require.Empty(t, three.fragments)
	require.Empty(t, three.documents)
}

// What is put together of parts is one gzip member, which Go's client reads as any other, and the same in the clear.
func TestParts(t *testing.T) {
	var texts parts
	whole := ""
	for i := range 20 {
		text := ""
		for range rand.IntN(2000) {
			text += fmt.Sprint(rand.IntN(100), i)
		}
		texts, whole = append(texts, newPart([]byte(text))), whole+text
	}
	require.Equal(t, whole, string(texts.bytes()))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, &document{json: texts}, "json", "")
	}))
	defer server.Close()
	for _, header := range []map[string]string{nil, {"Accept-Encoding": "identity"}} { // the first asks for gzip
		_, body := fetch(t, server.URL, header)
		require.Equal(t, whole, string(body))
	}
}

func TestCombineCRC(t *testing.T) {
	for range 200 {
		a, b := make([]byte, rand.IntN(5000)), make([]byte, rand.IntN(5000))
		for i := range a {
			a[i] = byte(rand.Uint32())
		}
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		require.Equal(t, crc32.ChecksumIEEE(append(a, b...)), combineCRC(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), len(b)))
	}
}
