package leader

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// fence lets writes pass while the Lease is valid, by the holder's own clock. The check is made when a request is sent, in the
// goroutine that sends it: a process that was stopped for a while may run that one before the one that ends the term.
type fence struct {
	until atomic.Pointer[time.Time] // with the monotonic clock; nil: not a holder
}

func (f *fence) open(until time.Time) { f.until.Store(&until) }

func (f *fence) close() { f.until.Store(nil) }

// left is how long the Lease is valid from now on.
func (f *fence) left() time.Duration {
	until := f.until.Load()
	if until == nil {
		return 0
	}
	return time.Until(*until)
}

func (f *fence) wrap(next http.RoundTripper) http.RoundTripper { return fenced{f, next} }

// fenced is an http.RoundTripper behind a fence.
type fenced struct {
	fence *fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && f.fence.left() <= 0 {
		if r.Body != nil {
			r.Body.Close() // a RoundTripper must, also when it fails
		}
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, ErrNotLeader)
	}
	return f.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find what is below, to close idle connections.
func (f fenced) WrappedRoundTripper() http.RoundTripper { return f.next }
