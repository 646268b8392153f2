package apiserver

import "net/http"

// A stage wraps the rest of the chain. It answers the request itself or passes it on.
type stage func(next http.Handler) http.Handler

// chain puts stages around a handler; the first stage is the outermost.
func chain(h http.Handler, stages ...stage) http.Handler {
	for i := len(stages) - 1; i >= 0; i-- {
		h = stages[i](h)
	}
	return h
}

// entry are the stages every request passes before it is routed. Who asks is known before anything
// else is told, the existence of a path included.
func (s *Server) entry() []stage {
	return []stage{
		withStackRoom,
		s.withMetrics,
		s.withRecovery,
		s.withRequestID,
		s.withWarnings,
		s.withAuthentication,
		s.withAudit, // between the two: it names both users
		s.withImpersonation,
	}
}

// handlerFunc is a handler that may fail; serve turns its error into a Status.
type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP implements http.Handler.
func (h handlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		writeError(w, r, err)
	}
}
