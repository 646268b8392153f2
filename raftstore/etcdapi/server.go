package etcdapi

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"kontiki/raftstore/etcdapi/grpcserver"
)

// Config says how a member is served.
type Config struct {
	// TLS has the server's certificate, and should require and verify client certificates: whoever
	// may connect may do everything. Nil serves without TLS, for tests.
	TLS *tls.Config
	// ClusterName is the same on all members of a cluster and different on others; its hash is the cluster id.
	ClusterName string
	// MaxRequestBytes bounds a request; 1.5 MiB by default, as in etcd.
	MaxRequestBytes int
	// ProgressInterval is how often a watch that asks for it hears how far it has come when nothing
	// happens; 5 s by default.
	ProgressInterval time.Duration
	// Log is slog.Default() by default.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxRequestBytes == 0 {
		c.MaxRequestBytes = 3 << 19
	}
	if c.ProgressInterval == 0 {
		c.ProgressInterval = 5 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Server is the etcd v3 API of a member.
type Server struct {
	config Config
	member Member
	header header
	grpc   *grpcserver.Server
	health *health.Server
}

// overheadBytes is what a message may have beyond MaxRequestBytes before gRPC itself refuses it.
const overheadBytes = 512 << 10

// New returns a server of the API; Serve makes it listen.
func New(member Member, config Config) *Server {
	s := &Server{config: config.withDefaults(), member: member, health: health.NewServer()}
	s.header = newHeader(member, s.config.ClusterName)
	s.grpc = grpcserver.New(grpcserver.Config{
		TLS: config.TLS, Codec: newCodec(), MaxMessageBytes: s.config.MaxRequestBytes + overheadBytes,
		Prepare: withOrigin, Unary: s.unary, Stream: s.stream,
	})
	s.register()
	return s
}

func (s *Server) register() {
	pb.RegisterKVServer(s.grpc, &kvServer{Server: s})
	pb.RegisterWatchServer(s.grpc, &watchServer{Server: s})
	pb.RegisterLeaseServer(s.grpc, &leaseServer{Server: s})
	pb.RegisterClusterServer(s.grpc, &clusterServer{Server: s})
	pb.RegisterMaintenanceServer(s.grpc, &maintenanceServer{Server: s})
	pb.RegisterAuthServer(s.grpc, authServer{})
	healthpb.RegisterHealthServer(s.grpc, s.health)
}

// Serve accepts connections until Close. It owns the listener.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); err != nil {
		return fmt.Errorf("etcd API: %w", err)
	}
	return nil
}

// Close ends all calls and watches, and waits for them.
func (s *Server) Close() {
	s.health.Shutdown()
	s.grpc.Close()
}
