package aggregation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// beginTime is how long a stream may take to begin; what comes then may take as long as it likes.
const beginTime = time.Minute

var errNoBeginning = fmt.Errorf("the backend did not answer within %s", beginTime)

// Request is what a client wants of another server.
type Request struct {
	User   User
	ID     string // of the audit log, in which the backend's entry is found by it
	Stream bool   // it may last: its context has no deadline
	Begun  func() // is called when the answer begins, unless it is nil
}

// Serves says whether another server has a group version.
func (a *Aggregator) Serves(gv schema.GroupVersion) bool {
	_, ok := (*a.routes.Load())[gv]
	return ok
}

// Proxy sends a request on to the server that has a group version, and answers with what that answers, as it comes. A request to
// upgrade the connection is joined with the backend's. An error means that nothing has been written; it is an API status error,
// ErrUnavailable if there is nobody to answer, or the context's.
func (a *Aggregator) Proxy(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion, q Request) error {
	to := (*a.routes.Load())[gv]
	if to == nil {
		return unavailable(gv.Version+"."+gv.Group, "it has just gone")
	}
	if why := to.unavailable(); why != "" {
		return unavailable(to.name, why)
	}
	if to.backend.requests.Add(1) > maxRequests {
		to.backend.requests.Add(-1)
		return unavailable(to.name, fmt.Sprintf("its server has %d requests at the moment, which is the limit", maxRequests))
	}
	defer to.backend.requests.Add(-1)
	return to.forward(w, r, q, a.log)
}

// unavailable says why no request is sent; empty if one is worth it.
func (r *remote) unavailable() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := conditionOf(r.object)
	switch {
	case r.found.isTrue() || said.isTrue():
		return ""
	case r.found != nil:
		return r.found.Reason + ": " + r.found.Message
	case said != nil:
		return said.Reason + ": " + said.Message
	}
	return "it has not been checked yet"
}

func (r *remote) forward(w http.ResponseWriter, in *http.Request, q Request, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(in.Context())
	defer cancel(nil)
	begun := func() bool { return true }
	if q.Stream {
		begun = time.AfterFunc(beginTime, func() { cancel(errNoBeginning) }).Stop
		defer begun()
	}
	var fault error
	proxy := &httputil.ReverseProxy{
		Transport:     r.backend,
		FlushInterval: -1, // events go on as they come
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "https", r.backend.host()
			p.SetXForwarded()
			identify(p.Out, q.User)
			p.Out.Header.Set("Audit-Id", q.ID)
		},
		ModifyResponse: func(response *http.Response) error {
			begun()
			if q.Begun != nil {
				q.Begun()
			}
			return judge(response, w.Header())
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { fault = err },
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	proxy.ServeHTTP(w, in.WithContext(ctx))
	switch {
	case fault == nil:
		return nil
	case in.Context().Err() != nil:
		return in.Context().Err() // the client has gone, or its time is over
	case errors.Is(fault, errRedirected):
		return errRedirect()
	case context.Cause(ctx) == errNoBeginning:
		return unavailable(r.name, errNoBeginning.Error())
	}
	r.poke() // it may be down
	return unavailable(r.name, "error trying to reach service: "+fault.Error())
}

var errRedirected = errors.New("redirected")

// ownHeaders are those that this server has written already; it keeps its own.
var ownHeaders = []string{"Audit-Id", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"}

// judge looks at what a backend answers before it goes on. written are the headers that this server would add it to.
func judge(response *http.Response, written http.Header) error {
	if code := response.StatusCode; code >= 300 && code < 400 && response.Header.Get("Location") != "" {
		return errRedirected
	}
	for _, name := range ownHeaders {
		response.Header.Del(name)
	}
	if response.Header.Get("Cache-Control") != "" {
		written.Del("Cache-Control")
	}
	return nil
}
