package differential

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"k8s.io/client-go/discovery"

	"kontiki/internal/openapidiff"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// TestOpenAPIAgainstUpstream compares the definitions of every kind in Kontiki's OpenAPI documents with those of the
// kube-apiserver's, field by field but for the words of descriptions.
func TestOpenAPIAgainstUpstream(t *testing.T) {
	program := os.Getenv(upstreamVariable)
	if program == "" {
		t.Skipf("%s does not name a kube-apiserver 1.37.2; make diff-upstream sets it", upstreamVariable)
	}
	config := testcluster.Start(t).REST(pki.Admin)
	upstream, kontiki := serverOf(t, startUpstream(t, program, config)), serverOf(t, config)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	paths, err := client.OpenAPIV3().Paths()
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	compared := 0
	for path := range paths {
		if strings.Count(path, "/") == 2 || path == "api/v1" { // others describe discovery
			compared += compareDefinitions(t, kontiki, upstream, "/openapi/v3/"+path)
		}
	}
	compared += compareDefinitions(t, kontiki, upstream, "/openapi/v2")
	t.Logf("%d definitions compared", compared)
}

// compareDefinitions compares what two servers say of the kinds that the first one serves, and returns how many definitions
// that takes.
func compareDefinitions(t *testing.T, kontiki, upstream Server, path string) int {
	found, wanted := definitionsOf(t, kontiki, path), definitionsOf(t, upstream, path)
	kinds := found.ListedKinds()
	wanted = wanted.Kinds(func(group, version, kind string) bool { return kinds[group+"/"+version+"/"+kind] })
	require.NotEmpty(t, wanted, path)
	all := func(_, _, _ string) bool { return true }
	for _, difference := range openapidiff.Compare(found.Kinds(all), wanted) {
		t.Errorf("%s: %s", path, difference)
	}
	return len(wanted)
}

func definitionsOf(t *testing.T, server Server, path string) openapidiff.Definitions {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "application/json")
	response, err := server.Client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	document, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, path)
	out, err := openapidiff.Parse(document)
	require.NoError(t, err)
	return out
}
