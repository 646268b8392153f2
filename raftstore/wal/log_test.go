package wal

import (
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func openMem(t testing.TB, dir *memDirectory) *Log {
	t.Helper()
	l, err := OpenIn(dir, modelOptions)
	require.NoError(t, err)
	return l
}

func filled(t testing.TB, dir *memDirectory, first, last uint64) *Log {
	t.Helper()
	l := openMem(t, dir)
	for i := first; i <= last; i++ {
		require.NoError(t, l.StoreLog(&raft.Log{Index: i, Term: 1, Data: make([]byte, 1000)}))
	}
	return l
}

// TestMonotonic: what this store refuses, and others do not.
func TestMonotonic(t *testing.T) {
	l := openMem(t, newMemDirectory())
	require.True(t, l.IsMonotonic())
	require.ErrorIs(t, l.StoreLog(command(0, 1, "")), ErrGap)
	require.NoError(t, l.StoreLogs(commands(5, 9, 1)))
	for _, index := range []uint64{0, 4, 5, 9, 11} {
		require.ErrorIs(t, l.StoreLog(command(index, 1, "")), ErrGap)
	}
	require.ErrorIs(t, l.StoreLogs([]*raft.Log{command(10, 1, ""), command(12, 1, "")}), ErrGap)
	require.ErrorIs(t, l.DeleteRange(6, 8), ErrMiddle)
	requireBounds(t, l, 5, 9)
}

// TestOneWriteOneSync: what an append costs once its segment is there.
func TestOneWriteOneSync(t *testing.T) {
	dir := newMemDirectory()
	l := filled(t, dir, 1, 1)
	before := dir.ops
	require.NoError(t, l.StoreLogs(commands(2, 50, 1)))
	require.Equal(t, before+2, dir.ops)
}

// TestRecycle: compaction bounds the disk, and what was in a file before is not taken for its content.
func TestRecycle(t *testing.T) {
	dir := newMemDirectory()
	l := filled(t, dir, 1, 200)
	for next := uint64(201); next < 1000; next += 20 {
		require.NoError(t, l.DeleteRange(1, next-21))
		for i := next; i < next+20; i++ {
			require.NoError(t, l.StoreLog(&raft.Log{Index: i, Term: 1, Data: make([]byte, 1000)}))
		}
		require.LessOrEqual(t, dir.used(), int64(7*minSegmentBytes))
	}
	requireBounds(t, l, 961, 1000)
	// Each record is where the older one was that it replaced: without the salt of the segment,
	// the older ones would follow the last one.
	l = openMem(t, dir.kill())
	requireBounds(t, l, 961, 1000)
}

// TestTruncationOverSegments: entries that were replaced stay in older segments, and stay gone.
func TestTruncationOverSegments(t *testing.T) {
	dir := newMemDirectory()
	l := filled(t, dir, 1, 100)
	require.NoError(t, l.DeleteRange(20, 100))
	require.NoError(t, l.StoreLogs(commands(20, 30, 2)))
	require.NoError(t, l.DeleteRange(1, 24)) // drops all but the segment with the truncation
	check := func() {
		requireBounds(t, l, 25, 30)
		requireEntries(t, l, commands(25, 30, 2))
		require.Equal(t, 1, l.Stats().Segments)
	}
	check()
	l = openMem(t, dir.kill())
	check()
}

// TestFullDisk: the error is the system's, nothing is lost, compaction works and makes room.
func TestFullDisk(t *testing.T) {
	dir := newMemDirectory()
	dir.capacity = 3 * minSegmentBytes
	l := openMem(t, dir)
	// Sixteen of these fill a segment to the last byte, but for the reserve.
	entry := func(i uint64) *raft.Log {
		return &raft.Log{Index: i, Term: 1, Data: make([]byte, (minSegmentBytes-segmentHeaderBytes)/16-recordHeaderBytes)}
	}
	next := uint64(1)
	var err error
	for ; err == nil; next++ {
		err = l.StoreLog(entry(next))
	}
	next--
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorIs(t, l.StoreLog(entry(next)), syscall.ENOSPC)
	requireBounds(t, l, 1, next-1)

	require.NoError(t, l.DeleteRange(next-2, next-1), "a conflict can be resolved")
	require.ErrorIs(t, l.StoreLog(entry(next-2)), syscall.ENOSPC)
	require.NoError(t, l.DeleteRange(1, 20), "compaction goes through")
	require.NoError(t, l.StoreLog(entry(next-2)), "and made room")
	requireBounds(t, l, 21, next-2)
	l = openMem(t, dir.kill())
	requireBounds(t, l, 21, next-2)
}

func TestLock(t *testing.T) {
	path := t.TempDir()
	l, err := Open(path, Options{})
	require.NoError(t, err)
	_, err = Open(path, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, path)
	require.NoError(t, l.Close())
	l, err = Open(path, Options{})
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestClosed(t *testing.T) {
	l := filled(t, newMemDirectory(), 1, 2)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err := l.FirstIndex()
	require.ErrorIs(t, err, ErrClosed)
	_, err = l.LastIndex()
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, l.GetLog(1, &raft.Log{}), ErrClosed)
	require.ErrorIs(t, l.StoreLog(command(3, 1, "")), ErrClosed)
	require.ErrorIs(t, l.DeleteRange(1, 1), ErrClosed)
	require.Equal(t, uint64(2), l.Stats().Last)
}

// TestConcurrent reads, appends, compacts and truncates at the same time, on real files with the
// goroutine that prepares segments. The race detector looks on.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, Options{SegmentBytes: 64 << 10})
	require.NoError(t, err)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				last, err := l.LastIndex()
				if err != nil {
					t.Error(err)
					return
				}
				var e raft.Log
				if err := l.GetLog(last, &e); err == nil && e.Index != last || err != nil && err != raft.ErrLogNotFound {
					t.Errorf("entry %d: %+v, %v", last, e.Index, err)
					return
				}
			}
		})
	}
	next := uint64(1)
	for round := range 100 {
		var batch []*raft.Log
		for range 20 {
			batch = append(batch, &raft.Log{Index: next, Term: uint64(round), Data: make([]byte, 1000)})
			next++
		}
		require.NoError(t, l.StoreLogs(batch))
		switch round % 10 {
		case 5:
			require.NoError(t, l.DeleteRange(next-10, next-1))
			next -= 10
		case 9:
			require.NoError(t, l.DeleteRange(1, next-50))
		}
	}
	close(done)
	readers.Wait()
	requireBounds(t, l, next-49, next-1)
	require.NoError(t, l.Close())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.LessOrEqual(t, len(files), l.Stats().Segments+1+keptFreed+1, "with the lock")
	l, err = Open(dir, Options{SegmentBytes: 64 << 10})
	require.NoError(t, err)
	requireBounds(t, l, next-49, next-1)
	require.NoError(t, l.Close())
}
