package compat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"kontiki/raftstore"
	"kontiki/raftstore/etcdapi"
)

// servers are what is compared; start returns an endpoint.
var servers = []struct {
	name  string
	start func(*testing.T) string
}{{"etcd", startEtcd}, {"kontiki", startKontiki}}

// both runs steps against etcd and against Kontiki, and compares what they were told.
func both(t *testing.T, steps func(*session)) {
	var transcripts [2]string
	for i, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			s := newSession(t, server.start(t))
			steps(s)
			transcripts[i] = s.transcript.String()
		})
	}
	require.NotEmpty(t, transcripts[0])
	require.Equal(t, transcripts[0], transcripts[1], "expected is etcd's")
}

// startEtcd runs an etcd in this process and returns its endpoint.
func startEtcd(t *testing.T) string {
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	cfg.LogLevel = "panic"
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenPeerUrls, cfg.ListenClientUrls = []url.URL{local}, []url.URL{local}
	e, err := embed.StartEtcd(cfg)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd does not start")
	}
	return e.Clients[0].Addr().String()
}

// startKontiki runs a member in this process and returns the endpoint of its etcd API.
func startKontiki(t *testing.T) string {
	_, endpoint := serveKontiki(t,
		raftstore.Config{Dir: t.TempDir(), Name: "default", ClientURLs: []string{"http://localhost:2379"}},
		etcdapi.Config{ProgressInterval: 100 * time.Millisecond})
	return endpoint
}

func serveKontiki(t *testing.T, config raftstore.Config, api etcdapi.Config) (*raftstore.Member, string) {
	quiet := slog.New(slog.DiscardHandler)
	config.NodeID, config.Bootstrap, config.Log, api.Log = "0001", true, quiet, quiet
	m, err := raftstore.Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	require.NoError(t, m.WaitReady(t.Context()))
	s := etcdapi.New(m, api)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		require.NoError(t, <-served)
	})
	return m, l.Addr().String()
}

// session is a client of one server, and what it was told.
type session struct {
	*testing.T
	ctx         context.Context
	client      *clientv3.Client
	kv          pb.KVClient
	watch       pb.WatchClient
	lease       pb.LeaseClient
	maintenance pb.MaintenanceClient
	cluster     pb.ClusterClient
	transcript  strings.Builder
}

func newSession(t *testing.T, endpoint string) *session {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	conn := client.ActiveConnection()
	return &session{
		T: t, ctx: ctx, client: client,
		kv: pb.NewKVClient(conn), watch: pb.NewWatchClient(conn), lease: pb.NewLeaseClient(conn),
		maintenance: pb.NewMaintenanceClient(conn), cluster: pb.NewClusterClient(conn),
	}
}

// note writes a line into the transcript.
func (s *session) note(format string, args ...any) { fmt.Fprintf(&s.transcript, format+"\n", args...) }

// told notes an answer to a call: the error's code and text, or the message without what is each
// server's own.
func (s *session) told(call string, answer proto.Message, err error) {
	if err != nil {
		st, ok := status.FromError(err)
		require.True(s, ok, "%s: %v", call, err)
		s.note("%s: %s %q", call, st.Code(), st.Message())
		return
	}
	answer = proto.Clone(answer)
	if h, ok := answer.(interface{ GetHeader() *pb.ResponseHeader }); ok && h.GetHeader() != nil {
		require.NotZero(s, h.GetHeader().ClusterId)
		require.NotZero(s, h.GetHeader().MemberId)
		require.NotZero(s, h.GetHeader().RaftTerm)
		h.GetHeader().ClusterId, h.GetHeader().MemberId, h.GetHeader().RaftTerm = 0, 0, 0
	}
	s.note("%s: %s", call, text(answer))
}

// text is a message as JSON. The package puts spaces in at random, so that nobody relies on the text.
func text(m proto.Message) string {
	b, err := protojson.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(b), " ", "")
}

// clientErr notes the error of a call through clientv3.
func (s *session) clientErr(call string, err error) {
	var text string
	if err != nil {
		text = err.Error()
	}
	s.note("%s: %q %v", call, text, errors.Is(err, context.DeadlineExceeded))
}

// shorthands

func (s *session) put(key, value string, change ...func(*pb.PutRequest)) {
	r := &pb.PutRequest{Key: []byte(key), Value: []byte(value)}
	for _, f := range change {
		f(r)
	}
	answer, err := s.kv.Put(s.ctx, r)
	s.told("put "+text(r), answer, err)
}

func (s *session) get(key, end string, change ...func(*pb.RangeRequest)) {
	r := &pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)}
	for _, f := range change {
		f(r)
	}
	answer, err := s.kv.Range(s.ctx, r)
	s.told("range "+text(r), answer, err)
}

func (s *session) del(key, end string, change ...func(*pb.DeleteRangeRequest)) {
	r := &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}
	for _, f := range change {
		f(r)
	}
	answer, err := s.kv.DeleteRange(s.ctx, r)
	s.told("delete "+text(r), answer, err)
}

func (s *session) txn(r *pb.TxnRequest) {
	answer, err := s.kv.Txn(s.ctx, r)
	s.told("txn "+text(r), answer, err)
}

func (s *session) compact(revision int64) {
	answer, err := s.kv.Compact(s.ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
	s.told(fmt.Sprint("compact ", revision), answer, err)
}
