package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A check is one line of /livez or /readyz.
type check struct {
	name string
	run  func(r *http.Request) error
}

// checks of an endpoint. Live means that the process serves; ready means that it can serve reads and
// writes: the store answers, the bootstrap objects exist and no stop is under way.
func (s *Server) checks(endpoint string) []check {
	list := []check{{"ping", func(*http.Request) error { return nil }}}
	if endpoint != "readyz" {
		return list
	}
	return append(list,
		check{"store", func(r *http.Request) error { return s.storeCheck.run(r.Context()) }},
		check{"bootstrap", func(*http.Request) error { return s.bootstrapped() }},
		check{"shutdown", func(*http.Request) error { return s.notStopping() }},
	)
}

// healthHandler serves /ENDPOINT, /ENDPOINT?verbose and /ENDPOINT/NAME, in Kubernetes' plain text.
func (s *Server) healthHandler(endpoint string) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		checks := s.checks(endpoint)
		rest := strings.Trim(strings.TrimPrefix(r.URL.Path, "/"+endpoint), "/")
		if rest != "" {
			if checks = slices.DeleteFunc(checks, func(c check) bool { return c.name != rest }); len(checks) == 0 {
				return errNotFoundPath()
			}
		}
		query := r.URL.Query()
		excluded := query["exclude"]
		var report strings.Builder
		failed := false
		for _, c := range checks {
			if slices.Contains(excluded, c.name) {
				fmt.Fprintf(&report, "[+]%s excluded: ok\n", c.name)
				continue
			}
			if err := c.run(r); err != nil {
				failed = true
				s.log.WarnContext(r.Context(), "health check failed", "endpoint", endpoint, "check", c.name, "err", err)
				fmt.Fprintf(&report, "[-]%s failed: reason withheld\n", c.name) // anybody may read this
				continue
			}
			fmt.Fprintf(&report, "[+]%s ok\n", c.name)
		}
		code, text := http.StatusOK, "ok"
		switch {
		case failed:
			code, text = http.StatusInternalServerError, report.String()+endpoint+" check failed\n"
		case query.Has("verbose"):
			text = report.String() + endpoint + " check passed\n"
		}
		return writeBytes(w, r, "text/plain; charset=utf-8", code, []byte(text))
	})
}

// healthRoot maps a health path to the endpoint it belongs to, for the authorizer.
func healthRoot(path string) string {
	for _, root := range publicPaths {
		if strings.HasPrefix(path, root+"/") {
			return root
		}
	}
	return path
}

// handler serves /metrics in Prometheus' text format.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
