package etcd_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/storage/etcd"
	"kontiki/apiserver/storage/kvtest"
	"kontiki/internal/etcdtest"
	"kontiki/raftstore"
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
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, m.WaitReady(ctx))
	return m
}

func TestConformance(t *testing.T) {
	t.Run("member", func(t *testing.T) { kvtest.Run(t, openMember(t)) })
	t.Run("etcd", func(t *testing.T) { kvtest.Run(t, openStore(t)) })
}

func TestSameAnswers(t *testing.T) {
	kvtest.Same(t, openMember(t), openStore(t))
}
