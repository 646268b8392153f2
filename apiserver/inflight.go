package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Requests that may be served at the same time, as in Kubernetes; watches and streams to nodes do
// not count. One more is answered 429 with Retry-After, which client-go obeys.
const (
	maxReadsInFlight  = 400
	maxWritesInFlight = 200
)

// inFlight bounds the work that the server takes on at once.
//
// Not yet: fair queues per user (API Priority and Fairness); one client can use up the whole limit.
type inFlight struct {
	reads, writes chan struct{} // a slot is taken by sending
	metrics       *metrics
}

func newInFlight(m *metrics) *inFlight {
	return &inFlight{
		reads:   make(chan struct{}, maxReadsInFlight),
		writes:  make(chan struct{}, maxWritesInFlight),
		metrics: m,
	}
}

// enter takes a slot for the request, which leave gives back, or refuses.
func (l *inFlight) enter(r *http.Request) (leave func(), err error) {
	slots, kind := l.reads, "readOnly"
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		slots, kind = l.writes, "mutating"
	}
	select {
	case slots <- struct{}{}:
	default:
		l.metrics.refused.WithLabelValues(kind).Inc()
		return nil, apierrors.NewTooManyRequests("The apiserver is handling too many requests, please try again later", 1)
	}
	gauge := l.metrics.inFlight.WithLabelValues(kind)
	gauge.Inc()
	return func() {
		gauge.Dec()
		<-slots
	}, nil
}

// stay counts a long-running request, for which there is no limit.
func (l *inFlight) stay() (leave func()) {
	l.metrics.watchers.Inc()
	return l.metrics.watchers.Dec
}
