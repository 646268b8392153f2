package raftstore

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// kv is the API server's store interface, which this package may not import.
type kv interface {
	Revision(ctx context.Context) (int64, error)
	Range(ctx context.Context, req mvcc.RangeRequest) (mvcc.RangeResult, error)
	Watch(ctx context.Context, req mvcc.WatchRequest) <-chan mvcc.WatchBatch
	Txn(ctx context.Context, req mvcc.TxnRequest) (mvcc.TxnResult, error)
}

var _ kv = (*Member)(nil)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openMember(t testing.TB, cfg Config) *Member {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = quiet()
	}
	m, err := Open(cfg)
	require.NoError(t, err)
	return m
}

func putTxn(key, value string) mvcc.TxnRequest {
	return mvcc.TxnRequest{Then: []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte(key), Value: []byte(value)}}}}
}

func TestSingleMember(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg := Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true}
	m := openMember(t, cfg)
	require.NoError(t, m.WaitReady(ctx))
	res, err := m.Txn(ctx, putTxn("k", "v"))
	require.NoError(t, err)
	require.EqualValues(t, 2, res.Revision)
	require.NoError(t, m.Close())

	m = openMember(t, cfg)
	defer func() { require.NoError(t, m.Close()) }()
	got, err := m.Range(ctx, mvcc.RangeRequest{Key: []byte("k")})
	require.NoError(t, err)
	require.Equal(t, "v", string(got.KVs[0].Value))
	rev, err := m.Revision(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, rev)
	st, err := m.Status()
	require.NoError(t, err)
	require.Equal(t, "Leader", st.Role)
}
