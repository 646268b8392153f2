package ingress

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// tries is how many endpoints are dialled for a request.
	tries = 3
	// dialTimeout is how long each of them has.
	dialTimeout = 2 * time.Second
	// headTimeout is how long an endpoint has for the head of its answer.
	headTimeout = time.Minute
)

// proxy answers requests.
type proxy struct {
	table     *atomic.Pointer[table]
	endpoints endpoints
	transport *http.Transport
	reverse   *httputil.ReverseProxy
	httpsPort string // that of redirects, ":8443" for instance; "" for HTTPS's own
}

type ruleKey struct{}

func newProxy(t *atomic.Pointer[table], e endpoints, log *slog.Logger) *proxy {
	p := &proxy{table: t, endpoints: e}
	p.transport = &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: headTimeout, DisableCompression: true,
	}
	p.reverse = &httputil.ReverseProxy{
		Transport: p,
		// What the client says of itself in X-Forwarded-* is dropped before.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", r.In.Host, r.In.Host
			r.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			status := http.StatusBadGateway
			switch {
			case errors.Is(err, errNoEndpoints):
				status = http.StatusServiceUnavailable
			case errors.Is(err, context.Canceled):
				return // the client has gone
			case isTimeout(err):
				status = http.StatusGatewayTimeout
			}
			answer(w, status)
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return p
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answer is one of our own: the status in plain text.
func answer(w http.ResponseWriter, status int) {
	http.Error(w, http.StatusText(status), status)
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if slices.ContainsFunc(strings.Split(r.URL.Path, "/"), func(e string) bool { return e == "." || e == ".." }) {
		answer(w, http.StatusBadRequest) // who checks the path here and who does there would not mean the same
		return
	}
	host := hostOf(r)
	found := p.table.Load().find(host, r.URL.Path)
	switch {
	case found == nil:
		answer(w, http.StatusNotFound)
	case found.secure && r.TLS == nil:
		http.Redirect(w, r, secured(r, host, p.httpsPort), http.StatusPermanentRedirect)
	default:
		p.reverse.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ruleKey{}, found)))
	}
}

// hostOf is the host that a client asks for, without its port, an IPv6 address without its brackets.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]")
}

// secured is where a request is led to; port has its colon, or is empty.
func secured(r *http.Request, host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // RFC 3986 section 3.2.2
	}
	target := *r.URL
	target.Scheme, target.Host = "https", host+port
	return target.String()
}

// RoundTrip sends a request to an endpoint of its backend, and to another when that cannot be dialled: then nothing of it
// has been read yet. Once it is sent it is not tried again, whatever it does.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	found := r.Context().Value(ruleKey{}).(*rule)
	addresses, err := p.endpoints.of(found.backend)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses[:min(tries, len(addresses))] {
		try := r.Clone(r.Context())
		try.URL.Host = address
		if r.Body != nil {
			try.Body = io.NopCloser(r.Body) // the transport closes what it is given
		}
		var response *http.Response
		if response, err = p.transport.RoundTrip(try); err == nil || !isDial(err) {
			return response, err
		}
	}
	return nil, err
}

func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
