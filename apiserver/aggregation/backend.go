package aggregation

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kontiki/internal/livetls"
)

// How connections to backends are made and kept.
const (
	dialTimeout       = 10 * time.Second
	handshakeTimeout  = 10 * time.Second
	keepAlive         = 30 * time.Second
	idleTimeout       = 90 * time.Second
	idleConnections   = 25 // to one endpoint
	maxRequests       = 1000
	maxResponseHeader = 64 << 10
)

// place is where a server is, and whom to believe that it is the one.
type place struct {
	namespace, name string
	port            int32
	caBundle        string
	insecure        bool
}

func placeOf(s *apiregistrationv1.APIService) place {
	p := place{
		namespace: s.Spec.Service.Namespace, name: s.Spec.Service.Name, port: 443,
		caBundle: string(s.Spec.CABundle), insecure: s.Spec.InsecureSkipTLSVerify,
	}
	if s.Spec.Service.Port != nil {
		p.port = *s.Spec.Service.Port
	}
	return p
}

func (p place) serverName() string { return p.name + "." + p.namespace + ".svc" }

func (p place) host() string { return net.JoinHostPort(p.serverName(), strconv.Itoa(int(p.port))) }

// backend is a server behind a Service. APIServices that lead to one place share it.
type backend struct {
	place
	config    Config
	transport *livetls.Transport
	broken    error        // why there is no way to talk to it
	requests  atomic.Int64 // that it has from clients at the moment

	refreshing sync.Mutex // is held while documents are asked for
	mu         sync.Mutex // guards documents
	documents  documents
}

// newBackend makes no connection yet. HTTP/1.1 is spoken, over which connections can be upgraded, and by which the endpoints
// of a Service share the work.
func newBackend(p place, config Config) *backend {
	b := &backend{place: p, config: config}
	var roots *x509.CertPool // nil are those of the system
	if p.caBundle != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(p.caBundle)) {
			b.broken = errors.New("unable to load root certificates: the caBundle has no PEM certificate")
		}
	}
	source := config.TLS
	if source == nil {
		source = livetls.Static(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	b.transport = livetls.NewTransport(source, func(c *tls.Config) *http.Transport {
		c.RootCAs, c.ServerName, c.InsecureSkipVerify, c.NextProtos = roots, p.serverName(), p.insecure, []string{"http/1.1"}
		return &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: handshakeTimeout, DisableCompression: true,
			MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxResponseHeader,
		}
	})
	return b
}

func (b *backend) close() { b.transport.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper: it sends a request to one of the Service's endpoints, whatever host it names.
func (b *backend) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.broken != nil {
		return nil, b.broken
	}
	address, err := b.config.Endpoint(r.Context(), b.namespace, b.name, b.port)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.Host, out.URL.Scheme, out.URL.Host = b.host(), "https", address
	return b.transport.RoundTrip(out)
}
