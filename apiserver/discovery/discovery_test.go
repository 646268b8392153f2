package discovery

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"kontiki/apiserver/registry"
)

func serve(t *testing.T) (*registry.Table, *httptest.Server) {
	table := registry.Builtin(registry.Options{})
	server := httptest.NewServer(Handler(table, nil, http.NotFoundHandler()))
	t.Cleanup(server.Close)
	return table, server
}

func get(t *testing.T, server *httptest.Server, path, accept, etag string) *http.Response {
	request, err := http.NewRequest("GET", server.URL+path, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", accept)
	request.Header.Set("If-None-Match", etag)
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// client-go must find the same resources both ways, and map short names and kinds.
func TestClientGoDiscovers(t *testing.T) {
	table, server := serve(t)
	for _, legacy := range []bool{false, true} {
		client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
		client.UseLegacyDiscovery = legacy
		groups, lists, err := client.ServerGroupsAndResources()
		require.NoError(t, err)
		require.Equal(t, "v1", groups[0].PreferredVersion.GroupVersion)

		found := map[schema.GroupVersionResource]metav1.APIResource{}
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			require.NoError(t, err)
			for _, r := range list.APIResources {
				found[gv.WithResource(r.Name)] = r
			}
		}
		for _, r := range table.Resources() {
			got, ok := found[r.GroupVersionResource]
			require.True(t, ok, "%v is missing (legacy %v)", r.GroupVersionResource, legacy)
			require.Equal(t, r.Kind, got.Kind)
			require.Equal(t, r.Namespaced, got.Namespaced)
			require.ElementsMatch(t, Verbs(r), got.Verbs)
			for _, s := range r.Subresources {
				sub, ok := found[r.GroupVersion().WithResource(r.Resource+"/"+s.Name)]
				require.True(t, ok, "%s/%s is missing", r.Resource, s.Name)
				require.Equal(t, s.Kind.Kind, sub.Kind)
			}
		}

		groupResources, err := restmapper.GetAPIGroupResources(client)
		require.NoError(t, err)
		mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(groupResources), client, nil)
		gvr, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "deploy"})
		require.NoError(t, err)
		require.Equal(t, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, gvr)
	}
}

func TestETagAndNegotiation(t *testing.T) {
	_, server := serve(t)
	first := get(t, server, "/apis", aggregatedType+",application/json", "")
	require.Equal(t, http.StatusOK, first.StatusCode)
	require.Equal(t, aggregatedType, first.Header.Get("Content-Type"))
	require.Equal(t, http.StatusNotModified, get(t, server, "/apis", aggregatedType, first.Header.Get("ETag")).StatusCode)

	plain := get(t, server, "/apis/", "application/json", first.Header.Get("ETag"))
	require.Equal(t, http.StatusOK, plain.StatusCode)
	var list metav1.APIGroupList
	require.NoError(t, json.NewDecoder(plain.Body).Decode(&list))
	require.Equal(t, "APIGroupList", list.Kind)
	require.Equal(t, http.StatusNotFound, get(t, server, "/apis/nope/v1", "", "").StatusCode)
}

// A row that arrives while the server runs is discovered, and is gone when it is removed.
func TestDocumentsFollowTheTable(t *testing.T) {
	table, server := serve(t)
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boats"}
	row := &registry.Resource{GroupVersionResource: gvr, Singular: "boat", Kind: "Boat", New: func() runtime.Object { return nil }}
	require.NoError(t, table.Add(row))
	require.ErrorIs(t, table.Add(row), registry.ErrDuplicateRow)
	require.Equal(t, http.StatusOK, get(t, server, "/apis/example.com/v1", "", "").StatusCode)
	require.NoError(t, table.Replace([]*registry.Resource{row}, nil))
	require.Equal(t, http.StatusNotFound, get(t, server, "/apis/example.com/v1", "", "").StatusCode)
}

// The hash of a known kind, as a real cluster shows it.
func TestStorageVersionHash(t *testing.T) {
	table := registry.Builtin(registry.Options{})
	core := table.Lookup(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	require.Equal(t, "xPOwRZ+Yhw8=", storageVersionHash(core))
	events := table.Lookup(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"})
	require.Equal(t, "r2yiGXH7wu8=", storageVersionHash(events))
}
