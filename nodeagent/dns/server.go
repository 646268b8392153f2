package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/informers"
)

const (
	// maxConnections bounds the TCP connections that are open at once; more wait to be accepted.
	maxConnections = 1000
	// idleTimeout is how long a TCP connection stays open without a query (RFC 7766 section 6.2.3).
	idleTimeout = 10 * time.Second
)

// Config says what to serve.
type Config struct {
	// Domain is the cluster's domain, "cluster.local" for example.
	Domain string
	// Addresses are those at which pods reach the server; they are answered to who asks for it.
	Addresses []netip.Addr
	// Upstreams are the resolvers ("address:port") that are asked about other domains. None: such queries fail.
	Upstreams []string
	// Informers are read for Services, EndpointSlices and Namespaces. They must not have started.
	Informers informers.SharedInformerFactory
	// Log gets what goes wrong.
	Log *slog.Logger
}

// Server answers queries.
type Server struct {
	resolver *resolver
	log      *slog.Logger
}

// New prepares a server. The error wraps ErrConfig, or is one of the informers that have started.
func New(cfg Config) (*Server, error) {
	if _, ok := dns.IsDomainName(cfg.Domain); !ok || cfg.Domain == "" || cfg.Domain == "." {
		return nil, fmt.Errorf("%w: domain %q", ErrConfig, cfg.Domain)
	}
	cluster, err := newCluster(cfg.Informers)
	if err != nil {
		return nil, err
	}
	z := &zone{domain: dns.CanonicalName(cfg.Domain), cluster: cluster}
	for _, address := range cfg.Addresses {
		z.server = append(z.server, address.String())
	}
	return &Server{
		resolver: &resolver{zone: z, forward: newCachedForwarder(cfg.Upstreams)},
		log:      cfg.Log.With("component", "dns"),
	}, nil
}

// Serve answers the queries that arrive at the given sockets until ctx ends; it closes them. The error says which of
// them failed.
func (s *Server) Serve(ctx context.Context, packets []net.PacketConn, listeners []net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	serve := func(server *dns.Server) {
		server.Handler = s.handler(ctx)
		group.Go(func() error { return serveUntil(ctx, server) })
	}
	for _, conn := range packets {
		serve(&dns.Server{PacketConn: conn, UDPSize: udpSize})
	}
	for _, listener := range listeners {
		serve(&dns.Server{
			Listener:    netutil.LimitListener(listener, maxConnections),
			IdleTimeout: func() time.Duration { return idleTimeout },
		})
	}
	return group.Wait()
}

// serveUntil serves until ctx ends or the socket fails, and returns when no query is in hand any more.
func serveUntil(ctx context.Context, server *dns.Server) error {
	started := make(chan struct{})
	server.NotifyStartedFunc = func() { close(started) }
	failed := make(chan error, 1)
	go func() { failed <- server.ActivateAndServe() }()
	select {
	case err := <-failed:
		return fmt.Errorf("dns: %w", err)
	case <-started:
	}
	select {
	case err := <-failed:
		return fmt.Errorf("dns: %w", err)
	case <-ctx.Done():
	}
	_ = server.Shutdown() // fails only where the server has failed
	<-failed
	return nil
}

// handler answers one query.
func (s *Server) handler(ctx context.Context) dns.HandlerFunc {
	return func(w dns.ResponseWriter, query *dns.Msg) {
		reply := s.resolver.resolve(ctx, query)
		fit(reply, query, w.RemoteAddr().Network() == "udp")
		if err := w.WriteMsg(reply); err != nil {
			s.log.Debug("answer could not be sent", "to", w.RemoteAddr(), "err", err)
		}
	}
}

// fit makes a reply as large as its query allows; what does not fit over UDP is asked for again over TCP.
func fit(reply, query *dns.Msg, isUDP bool) {
	size := dns.MaxMsgSize
	if isUDP {
		size = dns.MinMsgSize
	}
	if opt := query.IsEdns0(); opt != nil {
		reply.SetEdns0(udpSize, opt.Do())
		if opt.Version() != 0 {
			reply.Rcode = dns.RcodeBadVers
		}
		if isUDP {
			size = min(max(int(opt.UDPSize()), dns.MinMsgSize), udpSize)
		}
	}
	reply.Compress = true
	reply.Truncate(size)
}
