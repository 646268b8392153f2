package mvcc

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDefragment: the file shrinks, and everything is as before: history, leases, notes, watches, and what
// was written while it went on.
func TestDefragment(t *testing.T) {
	s := openStore(t, Options{CommitInterval: time.Millisecond, TailBytes: 1000})
	l := &raftLog{s: s}
	l.apply(Command{Grant: &LeaseGrant{ID: 5, TTLSeconds: 60}})
	l.apply(Command{Note: &Note{Name: "n", Value: []byte("v")}})
	value := strings.Repeat("v", 10_000)
	for i := range 500 {
		l.txn(put(fmt.Sprint("k", i%10), value))
	}
	l.apply(Command{Compact: s.Revision() - 5})
	require.Eventually(t, func() bool {
		st, err := s.Stats()
		require.NoError(t, err)
		return st.Swept == st.Compacted
	}, 10*time.Second, time.Millisecond)
	before, err := s.Stats()
	require.NoError(t, err)
	old, err := s.newView(false) // a reader from before, that takes its time
	require.NoError(t, err)

	var group sync.WaitGroup
	group.Go(func() {
		for i := range 200 {
			l.txn(put(fmt.Sprint("new", i), "v"))
		}
	})
	done := make(chan error, 1)
	go func() { done <- s.Defragment(t.Context()) }()
	group.Wait()
	require.Eventually(t, func() bool {
		st, err := s.Stats()
		require.NoError(t, err)
		return st.FileBytes < before.FileBytes/2
	}, 10*time.Second, time.Millisecond)
	_, err = old.record(Revision{Main: s.Revision() - 203})
	require.NoError(t, err, "a read that began before goes on")
	old.close()
	require.NoError(t, <-done)

	hash, at, err := s.HashAt(0)
	require.NoError(t, err)
	check := func(s *Store) {
		got, _, err := s.HashAt(at)
		require.NoError(t, err)
		require.Equal(t, hash, got)
		require.Len(t, s.Leases(), 1)
		require.Equal(t, "v", string(s.Note("n")))
		_, _, err = s.HashAt(at - 202)
		require.NoError(t, err)
	}
	check(s)
	require.NoError(t, s.Close())
	s, err = Open(s.path, Options{})
	require.NoError(t, err)
	defer s.Close()
	check(s)
	require.NoFileExists(t, s.path+defragSuffix)
}

// TestDefragmentGivesUp: cancelled, or cut short by a restore or a crash, it leaves nothing behind.
func TestDefragmentGivesUp(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Defragment(ctx), context.Canceled)
	require.NoFileExists(t, s.path+defragSuffix)
	require.NoError(t, os.WriteFile(s.path+defragSuffix, []byte("half"), 0o600))
	require.NoError(t, s.Close())
	s, err := Open(s.path, Options{})
	require.NoError(t, err)
	require.NoFileExists(t, s.path+defragSuffix)
	require.NoError(t, s.Defragment(t.Context()))
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Defragment(t.Context()), ErrClosed)
}
