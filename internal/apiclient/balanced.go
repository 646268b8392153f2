package apiclient

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
	"weak"

	"k8s.io/client-go/rest"

	"kontiki/internal/livetls"
)

// Live is how the servers are called by somebody whose certificate, or idea of whom to trust, may change while he runs:
// each request goes to the server that is current then. If it cannot be reached, nothing was sent, and the next one gets
// the request; if it breaks off, the next one gets it if it only reads. Client-go wants one URL, and never connects to it.
func (s *Servers) Live(source livetls.Source) *rest.Config {
	return &rest.Config{Host: s.Current(), Transport: s.transport(source)}
}

func (s *Servers) transport(source livetls.Source) *balanced {
	b := &balanced{servers: s, source: source, by: map[string]*toServer{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = slices.DeleteFunc(s.clients, func(p weak.Pointer[balanced]) bool { return p.Value() == nil })
	s.clients = append(s.clients, weak.Make(b))
	return b
}

// balanced is an http.RoundTripper that calls one of several servers.
type balanced struct {
	servers *Servers
	source  livetls.Source

	mu sync.Mutex // guards by
	by map[string]*toServer
}

// toServer has the connections to one server.
type toServer struct {
	transport *livetls.Transport

	mu    sync.Mutex // guards conns
	conns map[net.Conn]struct{}
}

func (b *balanced) to(server string) *toServer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[server] == nil {
		t := &toServer{conns: map[net.Conn]struct{}{}}
		t.transport = livetls.NewTransport(b.source, func(config *tls.Config) *http.Transport { return httpTransport(config, t.dial) })
		b.by[server] = t
	}
	return b.by[server]
}

// dialTimeout is how long a machine is waited for that does not even refuse a connection.
const dialTimeout = 3 * time.Second

func (t *toServer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	counted := &countedConn{Conn: conn, of: t}
	t.conns[counted] = struct{}{}
	return counted, nil
}

// countedConn is a connection that can be cut.
type countedConn struct {
	net.Conn
	of *toServer
}

func (c *countedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// cut ends all connections to a server: requests that wait for it, and watches, fail and are made again elsewhere.
func (b *balanced) cut(server string) {
	t := b.to(server)
	t.mu.Lock()
	var conns []net.Conn
	for conn := range t.conns {
		conns = append(conns, conn)
	}
	t.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
}

// open says to which servers there are connections.
func (b *balanced) open() (servers []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for server, t := range b.by {
		t.mu.Lock()
		if len(t.conns) > 0 {
			servers = append(servers, server)
		}
		t.mu.Unlock()
	}
	return servers
}

// RoundTrip implements http.RoundTripper.
func (b *balanced) RoundTrip(r *http.Request) (*http.Response, error) {
	if isWatch(r) {
		return b.watch(r)
	}
	return b.once(r)
}

// once asks each server at most once.
func (b *balanced) once(r *http.Request) (*http.Response, error) {
	first := b.servers.Current()
	answer, err := b.send(r, first)
	if err == nil || r.Context().Err() != nil {
		return answer, err
	}
	b.servers.suspect()
	if !repeatable(r, err) {
		return nil, err
	}
	for _, next := range b.servers.List() {
		if next == first {
			continue
		}
		again, rewound := rewind(r)
		if rewound != nil {
			return nil, err
		}
		answer, errNext := b.send(again, next)
		if errNext == nil {
			b.servers.move(first, next, err.Error())
			return answer, nil
		}
		if r.Context().Err() != nil || !repeatable(r, errNext) {
			return nil, errNext
		}
	}
	return nil, err
}

// CloseIdleConnections drops those that have no request.
func (b *balanced) CloseIdleConnections() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.by {
		t.transport.CloseIdleConnections()
	}
}

func (b *balanced) send(r *http.Request, server string) (*http.Response, error) {
	place, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	addressed := *r // a shallow copy: a RoundTripper must not change the request
	to := *r.URL
	to.Scheme, to.Host = place.Scheme, place.Host
	addressed.URL, addressed.Host = &to, ""
	return b.to(server).transport.RoundTrip(&addressed)
}

// repeatable says whether a request that has failed may be made again: it only reads, or was never sent.
func repeatable(r *http.Request, err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// rewind is a request with its body from the beginning.
func rewind(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	if r.GetBody == nil {
		return nil, errors.New("the body cannot be sent again")
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	again := *r
	again.Body = body
	return &again, nil
}

func httpTransport(config *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     config,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
	}
}
