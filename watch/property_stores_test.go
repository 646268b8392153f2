package watch_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kontiki/mvcc"
	"kontiki/raftstore"
	"kontiki/watch"
	"kontiki/watch/watchtest"
)

// store is what the property test needs of a store: the model, or the real one.
type store interface {
	watch.Source
	Txn(ctx context.Context, req mvcc.TxnRequest) (mvcc.TxnResult, error)
	compact(revision int64)
	interrupt(t *rapid.T)
	hold()
	release()
	settle()              // waits until nothing moves any more, if that can be known
	quiet() time.Duration // how long without events means that there are none now
}

type modelStore struct{ *watchtest.Store }

func (s modelStore) compact(revision int64) { s.Compact(revision) }
func (s modelStore) interrupt(*rapid.T)     { s.Interrupt() }
func (s modelStore) hold()                  { s.Hold() }
func (s modelStore) release()               { s.Release() }
func (s modelStore) settle()                { synctest.Wait() }
func (s modelStore) quiet() time.Duration   { return time.Second } // of the bubble's clock

// memberStore is a member that can be restarted under those who use it. (A mutex around the restart
// would not do: the bubble's clock, which elections need, stands still while somebody waits for one.)
type memberStore struct {
	t       *testing.T
	dir     string
	current atomic.Pointer[raftstore.Member]
}

func (s *memberStore) open() {
	m, err := raftstore.Open(raftstore.Config{Dir: s.dir, NodeID: "a", Bootstrap: true, Log: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	require.NoError(s.t, m.WaitReady(s.t.Context()))
	s.current.Store(m)
}

func (s *memberStore) interrupt(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "restart") != 0 { // they take most of the test's time
		t.Skip("no restart this time")
	}
	require.NoError(s.t, s.current.Load().Close())
	s.open()
}

func (s *memberStore) compact(revision int64) {
	require.NoError(s.t, s.current.Load().Compact(s.t.Context(), revision))
}

func (s *memberStore) hold()    {}
func (s *memberStore) release() {}
func (s *memberStore) settle()  { synctest.Wait() }

func (s *memberStore) quiet() time.Duration { return time.Second } // of the bubble's clock

func (s *memberStore) Revision(ctx context.Context) (int64, error) {
	return s.current.Load().Revision(ctx)
}

func (s *memberStore) Range(ctx context.Context, req mvcc.RangeRequest) (mvcc.RangeResult, error) {
	return s.current.Load().Range(ctx, req)
}

func (s *memberStore) Watch(ctx context.Context, req mvcc.WatchRequest) <-chan mvcc.WatchBatch {
	return s.current.Load().Watch(ctx, req)
}

func (s *memberStore) Txn(ctx context.Context, req mvcc.TxnRequest) (mvcc.TxnResult, error) {
	return s.current.Load().Txn(ctx, req)
}
