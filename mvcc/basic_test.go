package mvcc

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// openStore opens a store in a directory of the test's own, and closes it at the end.
func openStore(t testing.TB, opts Options) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "mvcc.db"), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// raftLog numbers commands as a raft log would.
type raftLog struct {
	s     *Store
	index uint64
}

func (l *raftLog) apply(c Command) Result {
	l.index++
	return l.s.Apply(l.index, c)[0]
}

func (l *raftLog) txn(ops ...Op) Result { return l.apply(Command{Txn: &TxnRequest{Then: ops}}) }

func put(key, value string) Op {
	return Op{Put: &PutRequest{Key: []byte(key), Value: []byte(value)}}
}
func del(key string) Op { return Op{Delete: &DeleteRequest{Key: []byte(key)}} }

func delRange(key, end string) Op {
	return Op{Delete: &DeleteRequest{Key: []byte(key), End: []byte(end)}}
}

func get(t testing.TB, s *Store, key string, revision int64) RangeResult {
	t.Helper()
	res, err := s.Range(RangeRequest{Key: []byte(key), Revision: revision})
	require.NoError(t, err)
	return res
}

func TestPutGetReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mvcc.db")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	l := &raftLog{s: s}
	require.EqualValues(t, 2, l.txn(put("a", "1"), put("b", "1")).Txn.Revision)
	require.EqualValues(t, 3, l.txn(put("a", "2")).Txn.Revision)
	require.EqualValues(t, 4, l.txn(del("b")).Txn.Revision)
	check := func(s *Store) {
		res := get(t, s, "a", 0)
		require.Equal(t, []KeyValue{{Key: []byte("a"), Value: []byte("2"), CreateRevision: 2, ModRevision: 3, Version: 2}}, res.KVs)
		require.EqualValues(t, 4, res.Revision)
		require.Empty(t, get(t, s, "b", 0).KVs)
		require.Equal(t, "1", string(get(t, s, "b", 3).KVs[0].Value))
	}
	check(s)
	require.NoError(t, s.Close())
	s, err = Open(path, Options{})
	require.NoError(t, err)
	defer s.Close()
	require.EqualValues(t, 3, s.Applied())
	check(s)
	require.Nil(t, s.Apply(3, Command{Txn: &TxnRequest{Then: []Op{put("a", "again")}}}))
	check(s)
}

func TestWatchBasic(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1"))
	out := s.Watch(t.Context(), WatchRequest{Key: []byte("a"), StartRevision: 1, PrevKV: true})
	require.Equal(t, "1", string((<-out).Events[0].KV.Value))
	l.txn(put("b", "1"))
	l.txn(del("a"))
	b := <-out
	require.EqualValues(t, 4, b.Revision)
	require.Len(t, b.Events, 1)
	require.Equal(t, DeleteEvent, b.Events[0].Type)
	require.Equal(t, "1", string(b.Events[0].PrevKV.Value))
}
