package mvcc

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

func putLease(key string, lease int64) Op {
	return Op{Put: &PutRequest{Key: []byte(key), Lease: lease}}
}

func (l *raftLog) grant(t *testing.T, ids ...int64) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, l.apply(Command{Grant: &LeaseGrant{ID: id, TTLSeconds: 60}}).Err)
	}
}

// TestRevokeIsOneRevision: the keys of a lease go together, and watchers see that they do.
func TestRevokeIsOneRevision(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.grant(t, 1, 2)
	require.EqualValues(t, 2, l.txn(putLease("b", 1), putLease("a", 1), putLease("c", 2)).Txn.Revision)
	out := s.Watch(t.Context(), WatchRequest{Key: []byte{0}, End: []byte{0}, PrevKV: true})
	res := l.apply(Command{Revoke: 1})
	require.NoError(t, res.Err)
	require.EqualValues(t, 3, res.Txn.Revision)
	b := <-out
	require.Len(t, b.Events, 2)
	for i, key := range []string{"a", "b"} {
		require.Equal(t, DeleteEvent, b.Events[i].Type)
		require.Equal(t, key, string(b.Events[i].KV.Key))
		require.EqualValues(t, 3, b.Events[i].KV.ModRevision)
		require.EqualValues(t, 1, b.Events[i].PrevKV.Lease)
	}
	require.Equal(t, ErrLeaseNotFound, l.apply(Command{Revoke: 1}).Err)
	require.Equal(t, []Lease{{ID: 2, TTLSeconds: 60}}, s.Leases())

	l.txn(del("c"))
	require.NoError(t, l.apply(Command{Revoke: 2}).Err)
	require.EqualValues(t, 4, s.Revision(), "a lease without keys goes without a revision")
}

func TestGrantsThatAreRefused(t *testing.T) {
	l := &raftLog{s: openStore(t, Options{})}
	l.grant(t, 1)
	require.Equal(t, ErrLeaseExists, l.apply(Command{Grant: &LeaseGrant{ID: 1, TTLSeconds: 9}}).Err)
	require.Equal(t, ErrLeaseNotFound, l.apply(Command{Grant: &LeaseGrant{TTLSeconds: 9}}).Err)
	require.Equal(t, ErrLeaseTTL, l.apply(Command{Grant: &LeaseGrant{ID: 2, TTLSeconds: MaxLeaseSeconds + 1}}).Err)
	require.Equal(t, []Lease{{ID: 1, TTLSeconds: 60}}, l.s.Leases())
}

// TestAttachments_KV16 attaches, detaches and attaches elsewhere, and revokes after a restart, a crash
// in which only the log survived, and a move to another store by a snapshot.
func TestAttachments_KV16(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mvcc.db")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	l := &raftLog{s: s}
	l.grant(t, 1, 2, 3, 4)
	l.txn(putLease("attached", 1))
	l.txn(putLease("detached", 2))
	l.txn(putLease("detached", 0))
	l.txn(putLease("moved", 3))
	l.txn(putLease("moved", 4))
	l.txn(Op{Put: &PutRequest{Key: []byte("moved"), Value: []byte("v"), IgnoreLease: true}})
	l.txn(putLease("reborn", 1), putLease("dead", 1))
	l.txn(del("reborn"), del("dead"))
	l.txn(put("reborn", "v"))

	check := func(s *Store) {
		exists := func(key string) bool { return len(get(t, s, key, 0).KVs) > 0 }
		revoke := func(id int64) {
			require.NoError(t, s.Apply(s.Applied()+1, Command{Revoke: id})[0].Err)
		}
		revoke(1)
		require.False(t, exists("attached"))
		require.True(t, exists("reborn"), "a deleted key takes no lease with it into its next life")
		revoke(2)
		require.True(t, exists("detached"))
		revoke(3)
		require.True(t, exists("moved"))
		require.Equal(t, [][]byte{[]byte("moved")}, s.LeaseKeys(4))
		revoke(4)
		require.False(t, exists("moved"))
		require.Empty(t, s.Leases())
	}
	var snapshot bytes.Buffer
	require.NoError(t, s.WriteSnapshot(&snapshot))
	require.NoError(t, s.Close())

	moved := openStore(t, Options{})
	require.NoError(t, moved.Restore(&snapshot))
	check(moved)

	s, err = Open(path, Options{})
	require.NoError(t, err)
	defer s.Close()
	check(s)
}

// TestFileOfVersion1: a file from before there were leases gets what it lacks.
func TestFileOfVersion1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mvcc.db")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	l := &raftLog{s: s}
	l.txn(put("a", "1"))
	require.NoError(t, s.Close())
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		require.NoError(t, tx.DeleteBucket(leasesBucket))
		return putNumber(tx.Bucket(metaBucket), "format", 1)
	}))
	require.NoError(t, db.Close())

	s, err = Open(path, Options{})
	require.NoError(t, err)
	defer s.Close()
	require.EqualValues(t, 2, s.Revision())
	require.EqualValues(t, 1, s.Applied())
	require.NoError(t, s.Apply(2, Command{Grant: &LeaseGrant{ID: 1, TTLSeconds: 1}})[0].Err)
	require.NoError(t, s.Sync())
}

func FuzzDecodeLease(f *testing.F) {
	f.Add(leaseKey(7), encodeLease(Lease{TTLSeconds: 60, RemainingMillis: 1500}))
	f.Fuzz(func(t *testing.T, key, b []byte) {
		l, err := decodeLease(key, b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		require.Equal(t, key, leaseKey(l.ID))
		again, err := decodeLease(key, encodeLease(l))
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}

// TestWatchFilters: puts and deletes that a watch leaves out do not move its events.
func TestWatchFilters(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1"))
	l.txn(del("a"))
	l.txn(put("a", "2"))
	puts := s.Watch(t.Context(), WatchRequest{Key: []byte("a"), StartRevision: 1, NoDelete: true})
	deletes := s.Watch(t.Context(), WatchRequest{Key: []byte("a"), StartRevision: 1, NoPut: true})
	for _, e := range take(t, puts, 2) {
		require.Equal(t, PutEvent, e.Type)
	}
	l.txn(del("a"))
	for _, e := range take(t, deletes, 2) {
		require.Equal(t, DeleteEvent, e.Type)
	}
}

// TestPartialPrevKV: at the compacted revision what was before is gone, and a watch can live with that.
func TestPartialPrevKV(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1")) // 2
	l.txn(put("a", "2")) // 3
	l.txn(put("a", "3")) // 4
	require.NoError(t, l.apply(Command{Compact: 3}).Err)
	strict := <-s.Watch(t.Context(), WatchRequest{Key: []byte("a"), StartRevision: 3, PrevKV: true})
	require.ErrorIs(t, strict.Err, ErrCompacted)
	out := s.Watch(t.Context(), WatchRequest{Key: []byte("a"), StartRevision: 3, PrevKV: true, PartialPrevKV: true})
	events := take(t, out, 2)
	require.Nil(t, events[0].PrevKV)
	require.Equal(t, "2", string(events[1].PrevKV.Value))
}
