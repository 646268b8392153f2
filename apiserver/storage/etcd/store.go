package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"kontiki/mvcc"
)

// Config of a Store.
type Config struct {
	// Endpoints are the URLs of etcd's client port, of any or all of its members. They are either all
	// https, or all http on this machine: what is stored holds the cluster's secrets.
	Endpoints []string
	// TLS has the client's certificate and the CA that etcd's are signed by. nil trusts the system's CAs.
	TLS *tls.Config
	// RequestTimeout bounds how long a request waits for etcd to be there and to answer, if its context
	// does not end before. 0 means 5 s, as in raftstore.
	RequestTimeout time.Duration
	// HistoryRetention is for how long revisions stay readable: older ones are compacted (retention.go).
	// 0 leaves compaction to others.
	HistoryRetention time.Duration
	// Log is slog.Default() by default.
	Log *slog.Logger
}

// Validate checks the endpoints and touches nothing.
func (c Config) Validate() error {
	if len(c.Endpoints) == 0 {
		return errors.New("no endpoint is given")
	}
	schemes := map[string]bool{}
	for _, endpoint := range c.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Port() == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" && u.Path != "/" || u.User != nil {
			return fmt.Errorf("%q is not the URL of an etcd, such as https://10.0.0.1:2379", endpoint)
		}
		if u.Scheme == "http" && !loopback(u.Hostname()) {
			return fmt.Errorf("%s is not encrypted: http is for this machine only", endpoint)
		}
		schemes[u.Scheme] = true
	}
	if len(schemes) > 1 {
		return errors.New("http and https are mixed")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Limits that etcd's documentation recommends for clients that must notice a dead server.
const (
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// reconnect is how soon a lost connection is made again. gRPC's default waits for up to two minutes.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 3 * time.Second,
}

// callOptions are those of clientv3: wait while a connection is made, and take answers of any size.
var callOptions = []grpc.CallOption{
	grpc.WaitForReady(true), grpc.MaxCallSendMsgSize(2 << 20), grpc.MaxCallRecvMsgSize(math.MaxInt32),
}

// Store is a store in etcd. It implements storage.KV.
type Store struct {
	config Config
	client *clientv3.Client
	kv     pb.KVClient
	stream pb.WatchClient

	cancel  context.CancelFunc // ends what Open started
	closed  chan struct{}      // closed when Close begins, under mu
	running sync.WaitGroup     // watches, and what Open started

	mu       sync.Mutex            // guards what follows
	watchers map[*watcher]struct{} // those that ask for progress
	newest   int64                 // the newest revision that was asked for, and that they should reach
}

// Open returns a store. It does not wait for etcd to be there: see WaitReady.
func Open(config Config) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	if config.RequestTimeout == 0 {
		config.RequestTimeout = 5 * time.Second
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            config.Endpoints,
		TLS:                  tlsOf(config),
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		MaxUnaryRetries:      1, // attempts, not more of them
		DialOptions:          []grpc.DialOption{grpc.WithStatsHandler(sentHandler{}), grpc.WithConnectParams(reconnect)},
		Logger:               zap.NewNop(), // what it would log is in the errors
	})
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	conn := client.ActiveConnection()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Store{
		config: config, client: client, kv: pb.NewKVClient(conn), stream: pb.NewWatchClient(conn),
		cancel: cancel, closed: make(chan struct{}), watchers: map[*watcher]struct{}{},
	}
	if config.HistoryRetention > 0 {
		s.running.Go(func() { keepHistory(ctx, s, config.HistoryRetention, config.Log) })
	}
	return s, nil
}

// tlsOf is the configuration that the endpoints' scheme asks for.
func tlsOf(config Config) *tls.Config {
	if u, err := url.Parse(config.Endpoints[0]); err == nil && u.Scheme == "http" {
		return nil
	}
	if config.TLS == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return config.TLS
}

// Close ends all watches (with raftstore.ErrClosed) and the connections. It must be called once.
func (s *Store) Close() error {
	s.mu.Lock()
	close(s.closed)
	s.mu.Unlock()
	s.cancel()
	err := s.client.Close()
	s.running.Wait()
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// WaitReady returns once etcd answers with the word of a majority.
func (s *Store) WaitReady(ctx context.Context) error {
	for {
		_, err := s.Revision(ctx)
		var away *UnavailableError
		if !errors.As(err, &away) || ctx.Err() != nil {
			return err
		}
		s.config.Log.Warn("waiting for the store", "error", err)
	}
}

// Revision returns the store's newest revision, linearizably, and has the watches that ask for progress
// learn that they have reached it.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	answer, err := s.readRange(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err != nil {
		return 0, err
	}
	revision := answer.Header.Revision
	s.requestProgress(revision) // who asks will wait for watches to get there
	return revision, nil
}

// Range reads keys, always with the word of a majority: a single member may be behind, and would take
// a revision for a future one.
func (s *Store) Range(ctx context.Context, req mvcc.RangeRequest) (mvcc.RangeResult, error) {
	if req.SortBy > mvcc.SortByValue {
		return mvcc.RangeResult{}, mvcc.ErrInvalidOp
	}
	answer, err := s.readRange(ctx, rangeRequest(&req))
	if err != nil {
		return mvcc.RangeResult{}, err
	}
	return rangeResult(answer), nil
}

// Compact makes reads and watches below revision impossible. If etcd has gone further already, there is
// nothing to do.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	err := s.retry(ctx, func(ctx context.Context) error {
		_, err := s.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision}, callOptions...)
		return err
	})
	if errors.Is(err, mvcc.ErrCompacted) {
		return nil
	}
	return err
}

func (s *Store) readRange(ctx context.Context, req *pb.RangeRequest) (answer *pb.RangeResponse, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		answer, err = s.kv.Range(ctx, req, callOptions...)
		return err
	})
	return answer, err
}
