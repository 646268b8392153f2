package apiclient

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

// A reflector of client-go that fails to watch waits longer each time: 0.8 s, 1.6 s, … up to half a minute, and begins anew
// only after two minutes without a failure (defaultBackoffInit and its neighbours in tools/cache, 0.37). It cannot be told otherwise, and it means servers
// that are overloaded; a cluster that loses a server now and then would see its informers fall behind by as much. So it never
// learns of a server that is lost: its watch ends as if the server had ended it, which it begins again at once where it was,
// and the next one waits here until there is a server to serve it. What a server answers, it hears.

// holdLimit is how long a watch that nobody serves waits without news of a server that is ready.
const holdLimit = time.Second

// holdLeast is how long it waits at least: a server may be ready, and refuse this one watch.
const holdLeast = 100 * time.Millisecond

// shortWatch is how long a watch must have run for its end to be no failure, if nothing has happened in it (handleAnyWatch).
const shortWatch = time.Second

func isWatch(r *http.Request) bool {
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watch && r.Method == http.MethodGet
}

// watch sends a watch until a server takes it.
func (b *balanced) watch(r *http.Request) (*http.Response, error) {
	for {
		ready := b.servers.readiness()
		answer, err := b.once(r)
		if r.Context().Err() != nil {
			return answer, err
		}
		if err == nil && !unavailable(answer) {
			answer.Body = &watched{ReadCloser: answer.Body, done: r.Context().Done(), began: time.Now()}
			return answer, nil
		}
		if err == nil {
			answer.Body.Close()
		}
		if !b.servers.hold(r.Context(), ready) {
			return nil, r.Context().Err()
		}
	}
}

// unavailable says that a server could not watch now, as it has no quorum or stops. Retry-After is left to client-go.
func unavailable(answer *http.Response) bool {
	return (answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusGatewayTimeout) &&
		answer.Header.Get("Retry-After") == ""
}

// watched is the body of a watch: however it ends, it is at its end. One that ends at once, before anything has happened, does
// so when it is old enough.
type watched struct {
	io.ReadCloser
	done  <-chan struct{} // closed when nobody reads it any more
	began time.Time
	read  bool // something has come
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.read = w.read || n > 0
	if err == nil {
		return n, nil
	}
	if !w.read {
		select {
		case <-time.After(shortWatch - time.Since(w.began)):
		case <-w.done:
		}
	}
	return n, io.EOF
}

// readiness returns a channel that is closed when a server is seen to be ready.
func (s *Servers) readiness() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// seenReady tells those that wait for it.
func (s *Servers) seenReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ready)
	s.ready = make(chan struct{})
}

// hold waits until a server is ready again, or it is time to try; false when ctx has ended.
func (s *Servers) hold(ctx context.Context, ready <-chan struct{}) bool {
	least, limit := time.NewTimer(holdLeast), time.NewTimer(holdLimit)
	defer least.Stop()
	defer limit.Stop()
	select {
	case <-least.C:
	case <-ctx.Done():
		return false
	}
	select {
	case <-ready:
	case <-limit.C:
	case <-ctx.Done():
		return false
	}
	return true
}
