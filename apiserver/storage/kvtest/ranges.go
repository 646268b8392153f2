package kvtest

import (
	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

func (s suite) ranges() {
	s.txn(s.put("a", "1"), s.put("a/b", "2"), s.put("b", "3"))
	all := s.list(mvcc.RangeRequest{})
	require.Equal(s, "a=1 a/b=2 b=3", s.show(all.KVs))
	require.EqualValues(s, 3, all.Count)
	require.False(s, all.More)
	require.Equal(s, s.revision(), all.Revision)
	require.Equal(s, "a= a/b= b=", s.show(s.list(mvcc.RangeRequest{KeysOnly: true}).KVs))
	count := s.list(mvcc.RangeRequest{CountOnly: true})
	require.Empty(s, count.KVs)
	require.EqualValues(s, 3, count.Count)

	from, err := s.store.Range(s.Context(), mvcc.RangeRequest{Key: s.key("a/b"), End: []byte{0}, Limit: 2})
	require.NoError(s, err)
	require.Equal(s, "a/b=2 b=3", s.show(from.KVs), "an open end")
	empty, err := s.store.Range(s.Context(), mvcc.RangeRequest{Key: s.key("b"), End: s.key("a")})
	require.NoError(s, err)
	require.Zero(s, empty.Count, "an end before the start")
	_, err = s.store.Range(s.Context(), mvcc.RangeRequest{})
	require.ErrorIs(s, err, mvcc.ErrEmptyKey)
}

// pages reads as a cache does when it loads: the first page fixes the revision.
func (s suite) pages() {
	s.txn(s.put("a", "1"), s.put("b", "1"), s.put("c", "1"))
	first := s.list(mvcc.RangeRequest{Limit: 2})
	require.Equal(s, "a=1 b=1", s.show(first.KVs))
	require.True(s, first.More)
	require.EqualValues(s, 3, first.Count)
	s.txn(s.put("c", "2"), s.put("d", "2"), s.del("a"))
	second, err := s.store.Range(s.Context(), mvcc.RangeRequest{Key: append(first.KVs[1].Key, 0), End: s.end(), Revision: first.Revision, Limit: 2})
	require.NoError(s, err)
	require.Equal(s, "c=1", s.show(second.KVs))
	require.False(s, second.More)
	require.Equal(s, s.revision(), second.Revision, "an answer names the newest revision")
	require.False(s, s.list(mvcc.RangeRequest{Limit: 3}).More, "the limit is just reached")
}

func (s suite) order() {
	s.txn(s.put("a", "y"), s.put("b", "x"))
	middle := s.txn(s.put("c", "x")).Revision
	s.txn(s.put("a", "z"))
	for _, c := range []struct {
		req  mvcc.RangeRequest
		want string
	}{
		{mvcc.RangeRequest{Descending: true}, "c=x b=x a=z"},
		{mvcc.RangeRequest{SortBy: mvcc.SortByModRevision}, "b=x c=x a=z"},
		{mvcc.RangeRequest{SortBy: mvcc.SortByModRevision, Limit: 1}, "b=x"},
		{mvcc.RangeRequest{SortBy: mvcc.SortByVersion, Descending: true, Limit: 1}, "a=z"},
		{mvcc.RangeRequest{SortBy: mvcc.SortByValue, Descending: true, Limit: 1}, "a=z"},
		{mvcc.RangeRequest{MinModRevision: middle}, "a=z c=x"},
		{mvcc.RangeRequest{MaxModRevision: middle}, "b=x c=x"},
		{mvcc.RangeRequest{MinCreateRevision: middle}, "c=x"},
		{mvcc.RangeRequest{MaxCreateRevision: middle - 1}, "a=z b=x"},
	} {
		require.Equal(s, c.want, s.show(s.list(c.req).KVs), "%+v", c.req)
	}
	_, err := s.store.Range(s.Context(), mvcc.RangeRequest{Key: s.key("a"), SortBy: mvcc.SortByValue + 1})
	require.ErrorIs(s, err, mvcc.ErrInvalidOp)
}

func (s suite) past() {
	first := s.txn(s.put("a", "1")).Revision
	second := s.txn(s.del("a"), s.put("b", "1")).Revision
	third := s.txn(s.put("a", "2")).Revision
	require.Nil(s, s.one("a", first-1))
	require.Equal(s, "1", string(s.one("a", first).Value))
	require.Nil(s, s.one("a", second))
	require.Equal(s, "b=1", s.show(s.list(mvcc.RangeRequest{Revision: second}).KVs))
	require.Equal(s, "a=2 b=1", s.show(s.list(mvcc.RangeRequest{Revision: third}).KVs))
	_, err := s.store.Range(s.Context(), mvcc.RangeRequest{Key: s.key("a"), Revision: third + 1})
	require.ErrorIs(s, err, mvcc.ErrFutureRevision)
}

func (s suite) compaction() {
	first := s.txn(s.put("a", "1"), s.put("gone", "1")).Revision
	second := s.txn(s.put("a", "2"), s.del("gone")).Revision
	third := s.txn(s.put("a", "3")).Revision
	require.ErrorIs(s, s.store.Compact(s.Context(), third+1), mvcc.ErrFutureRevision)
	require.NoError(s, s.store.Compact(s.Context(), second))
	for _, revision := range []int64{1, first} {
		_, err := s.store.Range(s.Context(), mvcc.RangeRequest{Key: s.key("a"), Revision: revision})
		require.ErrorIs(s, err, mvcc.ErrCompacted)
	}
	require.Equal(s, "a=2", s.show(s.list(mvcc.RangeRequest{Revision: second}).KVs))
	require.Equal(s, "a=3", s.show(s.list(mvcc.RangeRequest{}).KVs))
	_, err := s.store.Txn(s.Context(), mvcc.TxnRequest{Then: []mvcc.Op{
		s.put("b", ""), {Range: &mvcc.RangeRequest{Key: s.key("a"), Revision: first}},
	}})
	require.ErrorIs(s, err, mvcc.ErrCompacted)
	require.Equal(s, third, s.revision(), "nothing was changed")
}
