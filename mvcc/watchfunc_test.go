package mvcc

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWatchFunc: what is delivered is what a channel would have, until the receiver wants no more.
func TestWatchFunc(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("k", "1"))
	batches := make(chan WatchBatch, 10)
	done := s.WatchFunc(t.Context(), WatchRequest{Key: []byte("k"), StartRevision: 1}, func(b WatchBatch) bool {
		batches <- b
		return b.Revision < 3
	})
	require.Equal(t, "1", string((<-batches).Events[0].KV.Value))
	l.txn(put("k", "2"))
	require.Equal(t, "2", string((<-batches).Events[0].KV.Value))
	<-done
	l.txn(put("k", "3"))
	require.Empty(t, batches)
	st, err := s.Stats()
	require.NoError(t, err)
	require.Zero(t, st.Watchers)
}

// TestWatchFuncThatIsStuck: a receiver that does not return is slow, and ends with the store once it returns.
func TestWatchFuncThatIsStuck(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "mvcc.db"), Options{})
	require.NoError(t, err)
	l := &raftLog{s: s}
	stuck, release, last := make(chan struct{}, 10), make(chan struct{}), make(chan error, 10)
	done := s.WatchFunc(t.Context(), WatchRequest{Key: []byte("k")}, func(b WatchBatch) bool {
		stuck <- struct{}{}
		<-release
		last <- b.Err
		return true
	})
	l.txn(put("k", "1"))
	<-stuck
	l.txn(put("k", "2"))
	st, err := s.Stats()
	require.NoError(t, err)
	require.Equal(t, 1, st.SlowWatchers)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	close(release)
	require.NoError(t, <-closed)
	<-done
	var final error
	for len(last) > 0 {
		final = <-last
	}
	require.ErrorIs(t, final, ErrClosed)

	// And a watch of a closed store is told so at once.
	done = s.WatchFunc(t.Context(), WatchRequest{Key: []byte("k")}, func(b WatchBatch) bool {
		require.ErrorIs(t, b.Err, ErrClosed)
		return true
	})
	<-done
}
