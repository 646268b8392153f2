package livetls

import (
	"crypto/tls"
	"net/http"
	"sync"
	"time"
)

// Source returns the configuration of a client as it is now, the same pointer as long as it is the same. Nobody changes it.
type Source func() *tls.Config

// Static is a source that never changes.
func Static(config *tls.Config) Source { return func() *tls.Config { return config } }

// Transport is an http.RoundTripper whose connections are made with what its source says at the time.
type Transport struct {
	source Source
	create func(*tls.Config) *http.Transport

	mu      sync.Mutex // guards what follows; nothing is called under it but create
	config  *tls.Config
	current *http.Transport
}

// idleLimit is how long a connection without requests is kept, if create sets no limit: those of an older certificate must
// end some day.
const idleLimit = 90 * time.Second

// NewTransport returns a transport; create makes the http.Transport for a configuration, which it may change.
func NewTransport(source Source, create func(*tls.Config) *http.Transport) *Transport {
	return &Transport{source: source, create: create}
}

// Current is the http.Transport for the configuration as it is now.
func (t *Transport) Current() *http.Transport {
	config := t.source()
	t.mu.Lock()
	defer t.mu.Unlock()
	if config == t.config && t.current != nil {
		return t.current
	}
	if t.current != nil {
		t.current.CloseIdleConnections() // those with requests follow when these are over
	}
	t.config, t.current = config, t.create(config.Clone())
	if t.current.IdleConnTimeout == 0 {
		t.current.IdleConnTimeout = idleLimit
	}
	return t.current
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.Current().RoundTrip(r)
}

// CloseIdleConnections drops those that have no request.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
}
