package mvcc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// fileRecords lists what is in the file's history.
func fileRecords(t testing.TB, s *Store) (revs []Revision) {
	require.NoError(t, s.file.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(historyBucket).ForEach(func(k, _ []byte) error {
			rev, err := parseRevision(k)
			revs = append(revs, rev)
			return err
		})
	}))
	return revs
}

// TestPowerCut cuts the power at any write of a commit: of the pages that the commit changed, some
// are on the disk and some are not; the one with the new root, which bbolt writes last, may be torn.
// The store must be the one before or the one after, and the log must bring it up to date.
func TestPowerCut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mvcc.db")
	s, err := Open(path, Options{CommitInterval: time.Hour})
	require.NoError(t, err)
	defer s.Close()
	l := &raftLog{s: s}
	rng := rand.New(rand.NewPCG(1, 2))
	log := []Command{}
	write := func(n int) {
		for range n {
			c := Command{Txn: &TxnRequest{Then: []Op{put(fmt.Sprint("k", rng.IntN(50)), string(make([]byte, rng.IntN(3000)))), del(fmt.Sprint("d", rng.IntN(50)))}}}
			log = append(log, c)
			require.NoError(t, l.apply(c).Err)
		}
	}
	for round := range 40 {
		write(1 + rng.IntN(20))
		require.NoError(t, s.Sync())
		before, beforeIndex := read(t, path), l.index
		write(1 + rng.IntN(20))
		require.NoError(t, s.Sync())
		after, afterIndex := read(t, path), l.index
		want, rev, err := s.HashAt(0)
		require.NoError(t, err)

		torn, flipped := tear(rng, before, after)
		cut := filepath.Join(dir, fmt.Sprint("cut", round))
		require.NoError(t, os.WriteFile(cut, torn, 0o600))
		c, err := Open(cut, Options{})
		require.NoError(t, err)
		require.Contains(t, []uint64{beforeIndex, afterIndex}, c.Applied())
		if flipped {
			require.Equal(t, afterIndex, c.Applied())
		}
		for i, command := range log {
			c.Apply(uint64(i+1), command)
		}
		got, gotRev, err := c.HashAt(0)
		require.NoError(t, err)
		require.Equal(t, rev, gotRev)
		require.Equal(t, want, got)
		require.NoError(t, c.Close())
	}
}

func read(t *testing.T, path string) []byte {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// tear makes the file of a moment in the commit between two images. bbolt writes data pages, syncs,
// and then writes one of the two meta pages (0 and 1).
func tear(rng *rand.Rand, before, after []byte) (torn []byte, flipped bool) {
	page := os.Getpagesize()
	torn = make([]byte, len(after))
	copy(torn, before)
	stage := rng.IntN(3)
	for at := 0; at < len(after); at += page {
		isMeta := at < 2*page
		switch {
		case !isMeta && (stage > 0 || rng.IntN(2) == 0): // stage 0: some data pages
			copy(torn[at:at+page], after[at:])
		case isMeta && stage == 1: // half of what changed in the meta page
			half := at + 40 // within the meta structure, before its checksum
			copy(torn[at:half], after[at:half])
		case isMeta && stage == 2:
			copy(torn[at:at+page], after[at:])
		}
	}
	return torn, stage == 2
}

func TestSweepGoesOnAfterFailure_KV18(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	for range 10 {
		l.txn(put("k", "v"))
	}
	// The disk is full: no bbolt transaction can grow the file. All that is left to the store is to try again.
	require.NoError(t, s.Sync())
	s.commitMu.Lock()
	s.file.db.MaxSize = 1
	s.commitMu.Unlock()
	l.txn(put("big", string(make([]byte, 20<<20))))
	require.NoError(t, l.apply(Command{Compact: 8}).Err)
	require.Error(t, s.Sync())
	require.NotEmpty(t, get(t, s, "big", 0).KVs, "it can be read all the same")

	s.commitMu.Lock()
	s.file.db.MaxSize = 0
	s.commitMu.Unlock()
	waitSwept(t, s)
	require.Len(t, fileRecords(t, s), 4+1)
	l.txn(put("k", "v"))
	require.NoError(t, l.apply(Command{Compact: 11}).Err)
	waitSwept(t, s)
}

func TestSweepResumesAfterRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mvcc.db")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	l := &raftLog{s: s}
	for i := range 3 * sweepKeys {
		l.txn(put(fmt.Sprint("k", i), "1"))
		l.txn(put(fmt.Sprint("k", i), "2"))
	}
	head := s.Revision()
	s.stopBackground() // the power fails before the sweep
	require.NoError(t, l.apply(Command{Compact: head}).Err)
	require.NoError(t, s.Close())

	s, err = Open(path, Options{})
	require.NoError(t, err)
	defer s.Close()
	waitSwept(t, s)
	require.Len(t, fileRecords(t, s), 3*sweepKeys)
	require.EqualValues(t, 2, get(t, s, "k7", 0).KVs[0].Version)
}

func TestRestoreRefusesGarbage_KV13(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mvcc.db")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	l := &raftLog{s: s}
	l.txn(put("k", "v"))
	require.Error(t, s.Restore(bytes.NewReader([]byte("this is no store"))))
	require.Error(t, s.Restore(errorReader{}))
	require.Equal(t, "v", string(get(t, s, "k", 0).KVs[0].Value))
	l.txn(put("k", "w"))
	require.NoError(t, s.Close())

	require.NoError(t, os.WriteFile(path+restoreSuffix, []byte("left by a crash"), 0o600))
	s, err = Open(path, Options{})
	require.NoError(t, err)
	defer s.Close()
	require.NoFileExists(t, path+restoreSuffix)
	require.Equal(t, "w", string(get(t, s, "k", 0).KVs[0].Value))
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("connection lost") }

// TestRestoreMovesWatches: a watch goes on through a snapshot from another member.
func TestRestoreMovesWatches(t *testing.T) {
	ahead, behind := openStore(t, Options{}), openStore(t, Options{})
	la, lb := &raftLog{s: ahead}, &raftLog{s: behind}
	for i := range 10 {
		la.txn(put("k", fmt.Sprint(i)))
		if i < 5 {
			lb.txn(put("k", fmt.Sprint(i)))
		}
	}
	out := behind.Watch(t.Context(), WatchRequest{Key: []byte("k"), StartRevision: 2, PrevKV: true})
	quiet := behind.Watch(t.Context(), WatchRequest{Key: []byte("quiet"), Progress: true})
	require.Len(t, take(t, out, 5), 5)
	var b bytes.Buffer
	require.NoError(t, ahead.WriteSnapshot(&b))
	require.NoError(t, behind.Restore(&b))
	events := take(t, out, 5)
	require.EqualValues(t, 7, events[0].KV.ModRevision)
	require.Equal(t, "4", string(events[0].PrevKV.Value))
	for batch := range quiet {
		if batch.Revision == 11 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, behind.WaitApplied(ctx, 11), context.Canceled)
	require.NoError(t, behind.WaitApplied(t.Context(), 10))
}

func FuzzDecodeRecord(f *testing.F) {
	r := record{prev: Revision{3, 1}, kv: KeyValue{Key: []byte("key"), Value: []byte("value"), CreateRevision: 2, Version: 3, Lease: 4}}
	f.Add(r.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(Revision{9, 0}, b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		again, err := decodeRecord(r.rev, r.encode())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
