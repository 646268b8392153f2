package grpcserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"kontiki/internal/livetls"
)

// Config says how calls are served.
type Config struct {
	// TLS is the server's; nil serves without.
	TLS *tls.Config
	// Codec turns messages into bytes and back. The bytes that Unmarshal gets belong to the message from then on.
	Codec Codec
	// MaxMessageBytes bounds a message from a client. A larger one is refused with RESOURCE_EXHAUSTED.
	MaxMessageBytes int
	// Prepare adds to the context of calls; it is called once for many calls that have the same headers. It may be nil.
	Prepare func(context.Context) context.Context
	// Unary and Stream are called around calls; either may be nil.
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
}

// Codec is part of encoding.CodecV2 of grpc.
type Codec interface {
	Marshal(v any) (mem.BufferSlice, error)
	Unmarshal(data mem.BufferSlice, v any) error
}

// Server is a gRPC server. It is a grpc.ServiceRegistrar.
type Server struct {
	config  Config
	methods map[string]*method
	work    chan *stream    // unbuffered, to workers that have nothing to do
	workers atomic.Int64    // that stay
	ctx     context.Context // of all calls
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu       sync.Mutex // guards everything below; nothing is locked while it is held
	closed   bool
	listener net.Listener
	conns    map[*conn]struct{}
}

// maxWorkers is how many goroutines that have served a unary call wait for another one, rather than end. They keep
// the stacks that they have grown.
const maxWorkers = 256

// acceptPause is how long nothing is accepted after that has failed.
const acceptPause = 10 * time.Millisecond

// New returns a server; register services, then Serve.
func New(config Config) *Server {
	s := &Server{config: config, methods: map[string]*method{}, work: make(chan *stream), conns: map[*conn]struct{}{}}
	if config.TLS != nil {
		s.config.TLS = livetls.Server(config.TLS, func(c *tls.Config) { c.NextProtos = []string{"h2"} })
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// begin serves a unary call in a goroutine.
func (s *Server) begin(call *stream) {
	select {
	case s.work <- call:
	default:
		s.group.Go(func() { s.worker(call) })
	}
}

func (s *Server) worker(call *stream) {
	call.serveUnary()
	if s.workers.Add(1) > maxWorkers {
		s.workers.Add(-1)
		return
	}
	for {
		select {
		case call := <-s.work:
			call.serveUnary()
		case <-s.ctx.Done():
			return
		}
	}
}

// Serve accepts connections until Close. It owns the listener. It is called once.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	closed := s.closed
	s.listener = l
	s.mu.Unlock()
	if closed {
		return l.Close()
	}
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.adopt(nc)
		case errors.Is(err, net.ErrClosed):
			return nil
		default: // out of file descriptors, for instance
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
			}
		}
	}
}

// adopt serves a connection, unless the server is closed.
func (s *Server) adopt(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close()
		return
	}
	c := newConn(s, nc)
	s.conns[c] = struct{}{}
	s.group.Go(c.serve)
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close ends all connections and calls, and waits for the calls.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for c := range s.conns {
		_ = c.raw.Close()
	}
	s.mu.Unlock()
	s.stop()
	s.group.Wait()
}
