package apiserver

import (
	"net/http"
	"net/url"

	"github.com/gorilla/mux"

	"kontiki/apiserver/discovery"
	"kontiki/apiserver/openapi"
)

// routes maps every URL the server knows to its handler.
func (s *Server) routes() http.Handler {
	router := mux.NewRouter().SkipClean(true) // a proxied path keeps its double slashes
	router.MatcherFunc(s.matchAggregated).Handler(handlerFunc(s.serveAggregated))
	router.MatcherFunc(matchResource).Handler(handlerFunc(s.serveResource))

	others := router.NewRoute().Subrouter()
	others.Use(s.authorizePath, s.withSeat)
	others.PathPrefix("/livez").Handler(s.healthHandler("livez"))
	others.PathPrefix("/readyz").Handler(s.healthHandler("readyz"))
	others.PathPrefix("/healthz").Handler(s.healthHandler("healthz"))
	others.Handle("/version", discovery.VersionHandler())
	others.Handle(discoveryPath, handlerFunc(s.serveDiscovery))
	others.Handle(keysPath, handlerFunc(s.serveKeys))
	others.Handle("/metrics", s.metrics.handler())
	unknown := handlerFunc(func(http.ResponseWriter, *http.Request) error { return errNotFoundPath() })
	found := readOnly(discovery.Handler(s.table, s.aggregated.Others, unknown))
	for _, path := range []string{"/api", "/api/{version}", "/apis", "/apis/{group}", "/apis/{group}/{version}"} {
		others.Handle(path+"{slashes:/*}", found)
	}
	v3 := openapi.V3Handler(s.table, s.schemas, s.aggregated)
	others.Handle("/openapi/v3", v3)
	others.PathPrefix("/openapi/v3/").Handler(v3)
	others.Handle("/openapi/v2", openapi.V2Handler(s.table, s.schemas, s.aggregated))
	others.Handle("/", handlerFunc(s.servePaths))
	for path, handler := range s.config.Paths {
		others.Handle(path, handler)
	}

	for _, base := range []string{"/api/", "/apis/"} {
		others.PathPrefix(base).Handler(unknown)
	}
	router.NotFoundHandler = s.authorizePath(http.NotFoundHandler()) // outside the API, as plain text
	return router
}

// readOnly lets nobody write a document.
func readOnly(document http.Handler) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return errMethodNotAllowed()
		}
		document.ServeHTTP(w, r)
		return nil
	})
}

// servePaths lists what is at the root, as Kubernetes does for people with curl.
func (s *Server) servePaths(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, r, http.StatusOK, map[string][]string{"paths": {
		"/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version",
	}})
}

// truthy reads a boolean query parameter as Kubernetes does: present and not "false" or "0".
func truthy(query url.Values, name string) bool {
	values, ok := query[name]
	return ok && len(values) > 0 && values[0] != "false" && values[0] != "0"
}
