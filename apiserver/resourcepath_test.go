package apiserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// objectPaths are the shapes of a resource's URL below its group and version, as patterns of the router, the first that
// fits first: what resourcePath is to agree with once the slashes at the end are off.
var objectPaths = []string{
	"/{resource:namespaces}/{name}/{subresource:status|finalize|history}",
	"/namespaces/{namespace:[^/]*}/{resource}/{name}",
	"/namespaces/{namespace:[^/]*}/{resource}",
	"/namespaces/{namespace:[^/]*}/{resource}/{name}/{subresource}",
	"/namespaces/{namespace:[^/]*}/{resource}/{name}/{subresource}/{subpath:.*}",
	unknownInNamespace,
	"/{resource}",
	"/{resource}/{name}",
	"/{resource}/{name}/{subresource}",
	"/{resource}/{name}/{subresource}/{subpath:.*}",
}

// unknownInNamespace is of no resource: without it, what a namespace has with a piece missing, as in namespaces/a/pods//log,
// would fit the last pattern, as a subresource called pods of the namespace.
const unknownInNamespace = "/namespaces/{namespace:[^/]*}/{resource}/{rest:.*}"

func TestResourcePathsAgreeWithPatterns(t *testing.T) {
	router := patternRouter()
	piece := rapid.SampledFrom([]string{"", "api", "apis", "v1", "apps", "namespaces", "a", "pods", "status", "finalize", "history", "log", "watch", "x:y", "é"})
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + rapid.SampledFrom([]string{"api/v1/", "apis/apps/v1/", "api/", "apis/", "apis/apps/", "", "x/"}).Draw(t, "base") +
			strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "/")
		wanted, known := byPattern(router, path)
		got, ok := resourcePath(path)
		require.Equal(t, known, ok, path)
		if ok {
			require.Equal(t, wanted, got, path)
		}
	})
}

func patternRouter() *mux.Router {
	router := mux.NewRouter().SkipClean(true)
	for _, base := range []string{"/api/{version}/{watch:watch}", "/apis/{group}/{version}/{watch:watch}", "/api/{version}", "/apis/{group}/{version}"} {
		for _, path := range objectPaths {
			router.Handle(base+path, http.NotFoundHandler()).Name(path)
		}
	}
	return router
}

func byPattern(router *mux.Router, path string) (vars map[string]string, known bool) {
	trimmed := strings.TrimRight(path, "/")
	var match mux.RouteMatch
	if !router.Match(&http.Request{Method: "GET", URL: &url.URL{Path: trimmed}}, &match) || match.Route.GetName() == unknownInNamespace {
		return nil, false
	}
	namespace, inNamespace := match.Vars["namespace"]
	switch {
	case match.Vars["watch"] != "":
		match.Vars["watch"] = "true"
	case match.Vars["resource"] == "watch" && !inNamespace && match.Vars["name"] != "":
		return nil, false // an old URL of a watch with a piece missing, as in watch/pods/a//log, and nothing called watch
	case inNamespace && namespace == "" && match.Vars["name"] == "" && slices.Contains(ownSubresources, match.Vars["resource"]):
		return nil, false // the status of a namespace without a name
	}
	if _, ok := match.Vars["subpath"]; ok {
		match.Vars["subpath"] += path[len(trimmed):]
	}
	return match.Vars, true
}

// What a kube-apiserver 1.37.2 makes of the same paths is the measure here, except where a line says otherwise.
func TestResourcePathSlashes(t *testing.T) {
	type vars = map[string]string
	pods := vars{"version": "v1", "namespace": "a", "resource": "pods"}
	status := vars{"version": "v1", "resource": "namespaces", "name": "a", "subresource": "status"}
	for path, want := range map[string]vars{
		"/api/v1/namespaces/api/api/":              {"version": "v1", "namespace": "api", "resource": "api"}, // a list, not a subresource
		"/api/v1/namespaces/a/pods":                pods,
		"/api/v1/namespaces/a/pods/":               pods,
		"/api/v1/namespaces/a/pods//":              pods,
		"/api/v1/namespaces/":                      {"version": "v1", "resource": "namespaces"},
		"/api/v1/namespaces//":                     {"version": "v1", "resource": "namespaces"},
		"/api/v1/namespaces/a/":                    {"version": "v1", "resource": "namespaces", "name": "a"},
		"/api/v1/namespaces/a/status":              status,
		"/api/v1/namespaces/a/status//":            status,
		"/api/v1/namespaces/a/pods/p/":             {"version": "v1", "namespace": "a", "resource": "pods", "name": "p"},
		"/api/v1/namespaces/a/pods/p/log/":         {"version": "v1", "namespace": "a", "resource": "pods", "name": "p", "subresource": "log"},
		"/api/v1/namespaces/a/pods/p/proxy//x/y//": {"version": "v1", "namespace": "a", "resource": "pods", "name": "p", "subresource": "proxy", "subpath": "/x/y//"},
		"/apis/apps/v1/deployments/":               {"group": "apps", "version": "v1", "resource": "deployments"},
		"/api/v1/":                                 nil,
		"/api/v1//pods":                            nil,
		"/api//v1/pods":                            nil,
		"//api/v1/pods":                            nil,
		"/apis//v1/pods":                           nil,
		"/apis/apps//deployments":                  nil,
		"/api/v1/namespaces/a//pods":               nil,
		"/api/v1/namespaces//pods":                 {"version": "v1", "namespace": "", "resource": "pods"},
		"/api/v1/namespaces//pods/p":               {"version": "v1", "namespace": "", "resource": "pods", "name": "p"}, // 400
		"/api/v1/namespaces///pods":                nil,
		"/api/v1/namespaces//status":               nil,
		"/api/v1/watch/pods":                       {"version": "v1", "watch": "true", "resource": "pods"},
		"/api/v1/watch/namespaces/a/pods/p":        {"version": "v1", "watch": "true", "namespace": "a", "resource": "pods", "name": "p"},
		"/api/v1/watch/pods/a//log":                nil,
		"/api/v1/watch/":                           {"version": "v1", "resource": "watch"}, // of which there is none
		"/api/v1/namespaces/a/pods//status":        nil,                                    // there 400
	} {
		got, ok := resourcePath(path)
		require.Equal(t, want != nil, ok, path)
		if ok {
			require.Equal(t, want, got, path)
		}
	}
}

func BenchmarkResourcePath(b *testing.B) {
	for b.Loop() {
		if _, ok := resourcePath("/apis/apps/v1/namespaces/default/deployments/web/status"); !ok {
			b.Fatal("no match")
		}
	}
}
