package apiserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// objectPaths are the shapes of a resource's URL below its group and version, as patterns of the router, the first that
// fits first: what resourcePath is to agree with.
var objectPaths = []string{
	"/{resource:namespaces}/{name}/{subresource:status|finalize|history}",
	"/namespaces/{namespace}/{resource}/{name}",
	"/namespaces/{namespace}/{resource}",
	"/namespaces/{namespace}/{resource}/{name}/{subresource}",
	"/namespaces/{namespace}/{resource}/{name}/{subresource}/{subpath:.*}",
	"/{resource}",
	"/{resource}/{name}",
	"/{resource}/{name}/{subresource}",
	"/{resource}/{name}/{subresource}/{subpath:.*}",
}

func TestResourcePathsAgreeWithPatterns(t *testing.T) {
	router := mux.NewRouter().SkipClean(true)
	for _, base := range []string{"/api/{version}", "/apis/{group}/{version}"} {
		for _, path := range objectPaths {
			router.Handle(base+path, http.NotFoundHandler())
		}
	}
	piece := rapid.SampledFrom([]string{"", "api", "apis", "v1", "apps", "namespaces", "a", "pods", "status", "finalize", "history", "log", "x:y", "é"})
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + rapid.SampledFrom([]string{"api/v1/", "apis/apps/v1/", "api/", "apis/", "apis/apps/", "", "x/"}).Draw(t, "base") +
			strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "/")
		var match mux.RouteMatch
		wanted := router.Match(&http.Request{Method: "GET", URL: &url.URL{Path: path}}, &match)
		got, ok := resourcePath(path)
		require.Equal(t, wanted, ok, path)
		if ok {
			require.Equal(t, match.Vars, got, path)
		}
	})
}

func BenchmarkResourcePath(b *testing.B) {
	for b.Loop() {
		if _, ok := resourcePath("/apis/apps/v1/namespaces/default/deployments/web/status"); !ok {
			b.Fatal("no match")
		}
	}
}
