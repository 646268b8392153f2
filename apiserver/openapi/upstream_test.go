package openapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/registry"
	"kontiki/internal/kubeversion"
	"kontiki/internal/openapidiff"
)

// TestDocumentsOfUpstream compares every definition of the kinds that are served with the documents that Kubernetes'
// release has in api/openapi-spec: nothing may be missing, too much or different, but the words of descriptions. Those
// documents are written with the gate OpenAPIEnums off; enums are judged by enums_test.go, and against a running server by
// internal/differential.
func TestDocumentsOfUpstream(t *testing.T) {
	specs := upstreamSpecs(t)
	server, _ := serveAll(t)
	table := registry.Builtin(registry.Options{})
	served := servedKinds(table)
	compare := func(t *testing.T, path, file string) {
		_, body := fetch(t, server.URL+path, nil)
		found, err := openapidiff.Parse(body)
		require.NoError(t, err)
		document, err := os.ReadFile(filepath.Join(specs, file))
		require.NoError(t, err)
		wanted, err := openapidiff.Parse(document)
		require.NoError(t, err)
		wanted = wanted.Kinds(served)
		require.NotEmpty(t, wanted)
		withoutEnums(map[string]any(found))
		require.Empty(t, openapidiff.Compare(found.Kinds(served), wanted))
	}
	for _, gv := range groupVersions(table.Resources()) {
		t.Run(gv.String(), func(t *testing.T) {
			compare(t, "/openapi/v3/"+pathOf(gv), "v3/"+strings.ReplaceAll(pathOf(gv), "/", "__")+"_openapi.json")
		})
	}
	t.Run("v2", func(t *testing.T) { compare(t, "/openapi/v2", "swagger.json") })
}

// withoutEnums takes the values of enums out of a document. (A property may be called enum too, but is no list.)
func withoutEnums(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["enum"].([]any); ok {
			delete(value, "enum")
		}
		for _, inner := range value {
			withoutEnums(inner)
		}
	case []any:
		for _, inner := range value {
			withoutEnums(inner)
		}
	}
}

// upstreamSpecs is where the release's documents are.
func upstreamSpecs(t *testing.T) string {
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	module := "k8s.io/kubernetes@" + kubeversion.Kubernetes
	dir := filepath.Join(strings.TrimSpace(string(cache)), module, "api", "openapi-spec")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%s is not in the module cache: go mod download %s", module, module)
	}
	return dir
}

// servedKinds tells which kinds the documents have to describe: those of the rows, their lists and subresources, and what
// belongs to their group versions.
func servedKinds(table *registry.Table) func(group, version, kind string) bool {
	kinds := map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "Status"}: true, {Version: "v1", Kind: "APIResourceList"}: true,
	}
	for _, r := range table.Resources() {
		gv := r.GroupVersion()
		for _, kind := range []string{r.Kind, r.Kind + "List", "DeleteOptions", "WatchEvent"} {
			kinds[gv.WithKind(kind)] = true
		}
		for _, sub := range r.Subresources {
			kinds[sub.Kind] = true
		}
	}
	return func(group, version, kind string) bool {
		return kinds[schema.GroupVersionKind{Group: group, Version: version, Kind: kind}]
	}
}
