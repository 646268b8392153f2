package mvcc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStuckWatchersTakeNoMemory_KV11: 200 watches that nobody reads hold two batches each, which they share, however
// much is written; and whoever reads on misses nothing.
func TestStuckWatchersTakeNoMemory_KV11(t *testing.T) {
	s := openStore(t, Options{CommitInterval: time.Millisecond})
	l := &raftLog{s: s}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var watches []<-chan WatchBatch
	for range 200 {
		watches = append(watches, s.Watch(ctx, WatchRequest{Key: []byte("k")}))
	}
	const writes = 1000
	before := heap()
	for i := range writes {
		require.NoError(t, l.txn(put("k", strings.Repeat(string(rune('a'+i%26)), 100_000))).Err)
	}
	require.NoError(t, s.Sync())
	require.Less(t, heap()-before, int64(64<<20), "100 MB were written")
	st, err := s.Stats()
	require.NoError(t, err)
	require.Equal(t, 200, st.SlowWatchers)
	require.LessOrEqual(t, st.TailBytes, 8<<20)
	for _, w := range watches[:3] {
		for next := int64(2); next < 2+writes; {
			for _, e := range (<-w).Events {
				require.Equal(t, next, e.KV.ModRevision)
				next++
			}
		}
	}
}

// heap is the memory in use, after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestKilledWhileDefragmenting_KV13: whatever a kill -9 during a defragmentation leaves can be opened, has no leftovers, and
// has the same content under the same revisions.
func TestKilledWhileDefragmenting_KV13(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	for i := range 3000 {
		l.txn(put(fmt.Sprintf("k%03d", i%700), strings.Repeat("v", 2000)))
	}
	require.NoError(t, l.apply(Command{Compact: 2500}).Err)
	waitSwept(t, s)
	require.NoError(t, s.Sync())
	hash, at, err := s.HashAt(0)
	require.NoError(t, err)
	for round := 0; ; round++ {
		done := make(chan error, 1)
		go func() { done <- s.Defragment(t.Context()) }()
		half := 0
		for over := false; !over; {
			left := copyStore(t, s.path)
			if _, err := os.Stat(left + defragSuffix); err == nil {
				half++
			}
			killed, err := Open(left, Options{})
			require.NoError(t, err)
			got, revision, err := killed.HashAt(0)
			require.NoError(t, err)
			require.Equal(t, at, revision)
			require.Equal(t, hash, got)
			require.NoError(t, killed.Close())
			require.NoFileExists(t, left+defragSuffix)
			select {
			case err := <-done:
				require.NoError(t, err)
				over = true
			default:
			}
		}
		if half > 0 {
			return
		}
		require.Less(t, round, 50, "no copy was made while the new file was being written")
	}
}

// copyStore copies a store's files as they are at this moment. Nobody commits meanwhile; the defragmentation goes on.
func copyStore(t *testing.T, path string) string {
	to := filepath.Join(t.TempDir(), "mvcc.db")
	b, err := os.ReadFile(path) // either the old file or the new one: it is replaced by a rename
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, b, 0o600))
	if b, err := os.ReadFile(path + defragSuffix); err == nil {
		require.NoError(t, os.WriteFile(to+defragSuffix, b, 0o600))
	}
	return to
}

// TestFileShrinks_KV19: after a burst of overwrites the file can be made small again, and what a commit writes does not
// depend on how many pages are free: the free list is not written.
func TestFileShrinks_KV19(t *testing.T) {
	s := openStore(t, Options{CommitInterval: time.Millisecond})
	l := &raftLog{s: s}
	for i := range 400 {
		var ops []Op
		for j := range 50 {
			ops = append(ops, put(fmt.Sprintf("k%02d", j), strings.Repeat("v", 1024)))
		}
		require.NoError(t, l.txn(ops...).Err, i)
	}
	require.NoError(t, l.apply(Command{Compact: s.Revision()}).Err)
	waitSwept(t, s)
	burst, err := s.Stats()
	require.NoError(t, err)
	require.Greater(t, burst.FileBytes, int64(20<<20))
	require.Less(t, burst.InUseBytes, burst.FileBytes/10)

	written := s.file.db.Stats()
	for range 10 {
		require.NoError(t, l.txn(put("k00", "trickle")).Err)
		require.NoError(t, s.Sync())
	}
	now := s.file.db.Stats()
	since := now.Sub(&written)
	perCommit := since.TxStats.GetPageAlloc() / 10
	require.Less(t, perCommit, int64(64<<10), "bytes allocated for a commit")

	require.NoError(t, s.Defragment(t.Context()))
	after, err := s.Stats()
	require.NoError(t, err)
	require.Less(t, after.FileBytes, int64(2<<20))
	require.Equal(t, "trickle", string(get(t, s, "k00", 0).KVs[0].Value))
}

// TestPagesDoNotMix_KV20: a reader that takes its time between pages gets the pages of one revision, or is told that it
// was compacted; writes and compaction do not wait for it.
func TestPagesDoNotMix_KV20(t *testing.T) {
	s := openStore(t, Options{CommitInterval: time.Millisecond})
	l := &raftLog{s: s}
	const keys, page = 2000, 200
	write := func(value string) {
		for i := range keys {
			require.NoError(t, l.txn(put(fmt.Sprintf("k%05d", i), value)).Err)
		}
	}
	write("old")
	revision := s.Revision()
	read := func(from string) (RangeResult, error) {
		return s.Range(RangeRequest{Key: []byte(from), End: []byte("l"), Limit: page, Revision: revision})
	}
	from, pages := "k", 0
	for ; pages < 3; pages++ {
		res, err := read(from)
		require.NoError(t, err)
		require.Len(t, res.KVs, page)
		require.EqualValues(t, keys-page*pages, res.Count)
		for _, kv := range res.KVs {
			require.Equal(t, "old", string(kv.Value))
		}
		from = string(res.KVs[page-1].Key) + "\x00"
		write(fmt.Sprint("new", pages))
	}
	// A view of the file that stays open, as a snapshot's or a slow range's, holds nobody up either.
	s.mu.RLock()
	v, err := s.newView(false)
	s.mu.RUnlock()
	require.NoError(t, err)
	require.NoError(t, l.apply(Command{Compact: s.Revision()}).Err)
	waitSwept(t, s)
	write("newest")
	require.NoError(t, s.Sync())
	v.close()
	_, err = read(from)
	require.ErrorIs(t, err, ErrCompacted)
}
