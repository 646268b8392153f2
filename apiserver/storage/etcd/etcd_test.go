package etcd_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/storage/etcd"
	"kontiki/apiserver/storage/kvtest"
	"kontiki/internal/etcdtest"
	"kontiki/internal/pki"
	"kontiki/raftstore"
	"kontiki/raftstore/etcdapi"
)

// openStore opens a store over an etcd of its own.
func openStore(t *testing.T) *etcd.Store { return openAt(t, etcdtest.Start(t)) }

func openAt(t *testing.T, e *etcdtest.Server) *etcd.Store {
	return openURL(t, etcd.Config{Endpoints: []string{e.URL()}})
}

func openMember(t *testing.T) *raftstore.Member {
	m, err := raftstore.Open(raftstore.Config{
		Dir: t.TempDir(), NodeID: "a", Bootstrap: true, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, m.WaitReady(ctx))
	return m
}

// openServed opens a store over the etcd API of a member, with TLS on both sides.
func openServed(t *testing.T) *etcd.Store {
	p, err := pki.Open(t.TempDir(), pki.Options{})
	require.NoError(t, err)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	server := etcdapi.New(openMember(t), etcdapi.Config{TLS: p.StoreServing(), Log: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, <-served)
	})
	return openURL(t, etcd.Config{Endpoints: []string{"https://" + listener.Addr().String()}, TLS: p.StoreClient()})
}

func TestConformance(t *testing.T) {
	t.Run("member", func(t *testing.T) { kvtest.Run(t, openMember(t)) })
	t.Run("etcd", func(t *testing.T) { kvtest.Run(t, openStore(t)) })
	t.Run("member through its etcd API", func(t *testing.T) { kvtest.Run(t, openServed(t)) })
}

func TestSameAnswers(t *testing.T) {
	t.Run("etcd", func(t *testing.T) { kvtest.Same(t, openMember(t), openStore(t)) })
	t.Run("member through its etcd API", func(t *testing.T) { kvtest.Same(t, openMember(t), openServed(t)) })
}
