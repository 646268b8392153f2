package etcdapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"kontiki/raftstore"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// served is a member with its API.
type served struct {
	*raftstore.Member
	endpoint string
	server   *Server
	gone     bool
}

// start serves some members of one cluster, on a network in memory, with their API on loopback.
func start(t *testing.T, n int, c Config, tune ...func(*raftstore.Config)) []*served {
	network, dir := raftstore.NewMemoryNetwork(), t.TempDir()
	var peers []raftstore.Peer
	for i := range n {
		name := fmt.Sprint("m", i)
		peers = append(peers, raftstore.Peer{ID: name, Address: name})
	}
	var members []*served
	for _, p := range peers {
		config := raftstore.Config{
			Dir: filepath.Join(dir, p.ID), NodeID: p.ID, Name: "name-" + p.ID, Network: network.Join(p.Address),
			ClientURLs: []string{"https://" + p.Address + ".example:2379"},
			Bootstrap:  true, Peers: peers, RequestTimeout: 2 * time.Second, Log: quiet(),
		}
		for _, f := range tune {
			f(&config)
		}
		m, err := raftstore.Open(config)
		require.NoError(t, err)
		s := &served{Member: m}
		members = append(members, s)
		t.Cleanup(func() { s.stop(t) })
		c.Log = quiet()
		s.server = New(m, c)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		s.endpoint = l.Addr().String()
		go func() { _ = s.server.Serve(l) }() // it ends with Close
	}
	for _, s := range members {
		require.NoError(t, s.WaitReady(t.Context()))
	}
	return members
}

func (s *served) stop(t *testing.T) {
	if s.gone {
		return
	}
	s.gone = true
	s.server.Close()
	require.NoError(t, s.Close())
}

func (s *served) client(t *testing.T) *clientv3.Client {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// within bounds what a test waits for.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
