package apiserver

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"kontiki/apiserver/audit"
)

// auditIDHeader carries the request's id both ways; a client may choose it.
const auditIDHeader = "Audit-Id"

// maxAuditIDLength bounds what a client may make us log and store.
const maxAuditIDLength = 64

// withRequestID gives every request an id, which the response, the logs and the raft entry of a
// write carry.
func (s *Server) withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(auditIDHeader)
		if id == "" || len(id) > maxAuditIDLength {
			id = uuid.NewString()
		}
		w.Header().Set(auditIDHeader, id)
		// Objects change at any moment: what is here must not come from a cache in between.
		w.Header().Set("Cache-Control", "no-cache, private")
		factsOf(r.Context()).id = id
		next.ServeHTTP(w, r)
	})
}

// requestFacts is what the stages learn about a request on its way in. One goroutine, the
// request's, reads and writes it.
type requestFacts struct {
	id              string
	received        time.Time
	user            User
	verb            string
	group, resource string
	longRunning     bool
	warnings        *warnings

	record *audit.Record                                           // nil if the request is not audited
	toJSON func(contentType string, answer []byte) ([]byte, error) // for the record
}

type factsKey struct{}

func withFacts(ctx context.Context, facts *requestFacts) context.Context {
	return context.WithValue(ctx, factsKey{}, facts)
}

// factsOf returns the facts of the request that ctx belongs to, empty ones outside a request.
func factsOf(ctx context.Context) *requestFacts {
	if facts, ok := ctx.Value(factsKey{}).(*requestFacts); ok {
		return facts
	}
	return &requestFacts{}
}
