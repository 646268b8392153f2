package kvtest

import (
	"bytes"
	"fmt"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

func (s suite) txnIsOneRevision() {
	before := s.revision()
	first := s.txn(s.put("a", "1"), s.put("b", "1"))
	require.Equal(s, before+1, first.Revision)
	require.Equal(s, first.Revision, s.revision())
	second := s.txn(s.put("a", "2"), s.del("b"), s.put("c", ""))
	require.Equal(s, before+2, second.Revision)
	require.EqualValues(s, 1, second.Ops[1].Delete.Deleted)

	a := s.one("a", 0)
	require.Equal(s, "2", string(a.Value))
	require.Equal(s, []int64{first.Revision, second.Revision, 2, 0}, []int64{a.CreateRevision, a.ModRevision, a.Version, a.Lease})
	require.Nil(s, s.one("b", 0))
	require.Empty(s, s.one("c", 0).Value)

	third := s.txn(s.put("b", "again"))
	b := s.one("b", 0)
	require.Equal(s, []int64{third.Revision, third.Revision, 1}, []int64{b.CreateRevision, b.ModRevision, b.Version}, "re-created")
	all := s.txn(mvcc.Op{Delete: &mvcc.DeleteRequest{Key: s.key(""), End: s.end()}})
	require.EqualValues(s, 3, all.Ops[0].Delete.Deleted)
	require.Empty(s, s.list(mvcc.RangeRequest{}).KVs)
}

// compares tries every target with every relation, below, at and above the key's attribute.
func (s suite) compares() {
	created := s.txn(s.put("k", "m")).Revision
	changed := s.txn(s.put("k", "m")).Revision
	for target, number := range map[mvcc.CompareTarget]int64{
		mvcc.CompareVersion: 2, mvcc.CompareCreateRevision: created, mvcc.CompareModRevision: changed, mvcc.CompareLease: 0, mvcc.CompareValue: 0,
	} {
		for result, holds := range map[mvcc.CompareResult][3]bool{ // the attribute is greater, equal, less
			mvcc.Equal: {false, true, false}, mvcc.NotEqual: {true, false, true},
			mvcc.Greater: {true, false, false}, mvcc.Less: {false, false, true},
		} {
			for i, value := range []string{"l", "m", "n"} {
				c := mvcc.Compare{Key: s.key("k"), Target: target, Result: result, Number: number + int64(i) - 1, Value: []byte(value)}
				require.Equal(s, holds[i], s.holds(c), "target %d, relation %d, operand %d", target, result, i)
			}
		}
	}
	s.comparesOfSeveral()
}

func (s suite) holds(compares ...mvcc.Compare) bool {
	s.Helper()
	result, err := s.store.Txn(s.Context(), mvcc.TxnRequest{Compare: compares})
	require.NoError(s, err)
	return result.Succeeded
}

// comparesOfSeveral: keys that do not exist, ranges, and several compares.
func (s suite) comparesOfSeveral() {
	missing := func(target mvcc.CompareTarget) mvcc.Compare { return mvcc.Compare{Key: s.key("none"), Target: target} }
	require.True(s, s.holds(missing(mvcc.CompareModRevision), missing(mvcc.CompareCreateRevision), missing(mvcc.CompareVersion)))
	require.False(s, s.holds(missing(mvcc.CompareValue)), "a key that does not exist has no value, not an empty one")
	s.txn(s.put("range/a", "x"), s.put("range/b", "x"))
	every := mvcc.Compare{Key: s.key("range/"), End: s.key("range0"), Target: mvcc.CompareValue, Value: []byte("x")}
	require.True(s, s.holds(every))
	s.txn(s.put("range/b", "y"))
	require.False(s, s.holds(every))
	require.False(s, s.holds(missing(mvcc.CompareVersion), every), "all must hold")

	before := s.revision()
	failed, err := s.store.Txn(s.Context(), mvcc.TxnRequest{
		Compare: []mvcc.Compare{every}, Then: []mvcc.Op{s.put("then", "")}, Else: []mvcc.Op{s.get("range/b")},
	})
	require.NoError(s, err)
	require.False(s, failed.Succeeded)
	require.Equal(s, before, failed.Revision)
	require.Equal(s, "range/b=y", s.show(failed.Ops[0].Range.KVs))
	require.Nil(s, s.one("then", 0))
}

func (s suite) nested() {
	inner := &mvcc.TxnRequest{
		Compare: []mvcc.Compare{{Key: s.key("a"), Target: mvcc.CompareVersion}},
		Then:    []mvcc.Op{s.put("a", "made")},
		Else:    []mvcc.Op{s.put("a", "changed"), s.get("a")},
	}
	require.True(s, s.txn(mvcc.Op{Txn: inner}).Ops[0].Txn.Succeeded)
	result := s.txn(s.put("b", ""), mvcc.Op{Txn: inner})
	nested := result.Ops[1].Txn
	require.False(s, nested.Succeeded)
	require.Equal(s, "a=changed", s.show(nested.Ops[1].Range.KVs), "operations see those before them")
	require.Equal(s, result.Revision, s.one("a", 0).ModRevision)
}

func (s suite) previousVersions() {
	put := func(value string) mvcc.Op {
		return mvcc.Op{Put: &mvcc.PutRequest{Key: s.key("a"), Value: []byte(value), PrevKV: true}}
	}
	require.Nil(s, s.txn(put("1")).Ops[0].Put.PrevKV)
	prev := s.txn(put("2")).Ops[0].Put.PrevKV
	require.Equal(s, "1", string(prev.Value))
	require.EqualValues(s, 1, prev.Version)
	require.Nil(s, s.txn(s.put("a", "3")).Ops[0].Put.PrevKV, "not asked for")
	s.txn(s.put("b", "1"))
	gone := s.txn(mvcc.Op{Delete: &mvcc.DeleteRequest{Key: s.key(""), End: s.end(), PrevKV: true}}).Ops[0].Delete
	require.EqualValues(s, 2, gone.Deleted)
	require.Equal(s, "a=3 b=1", s.show(gone.PrevKVs))
}

func (s suite) ignoreValue() {
	keep := mvcc.Op{Put: &mvcc.PutRequest{Key: s.key("a"), IgnoreValue: true, IgnoreLease: true}}
	_, err := s.store.Txn(s.Context(), mvcc.TxnRequest{Then: []mvcc.Op{keep}})
	require.ErrorIs(s, err, mvcc.ErrKeyNotFound)
	s.txn(s.put("a", "kept"))
	s.txn(keep)
	a := s.one("a", 0)
	require.Equal(s, "kept", string(a.Value))
	require.EqualValues(s, 2, a.Version)
}

func (s suite) readOnly() {
	s.txn(s.put("a", "1"))
	before := s.revision()
	result := s.txn(s.get("a"), s.get("none"))
	require.Equal(s, before, result.Revision)
	require.Equal(s, "a=1", s.show(result.Ops[0].Range.KVs))
	require.Empty(s, result.Ops[1].Range.KVs)
	require.Equal(s, before, s.txn().Revision, "empty")
	require.Equal(s, before, s.txn(s.del("none")).Revision, "deletes nothing")
	require.Equal(s, before, s.revision())
}

func (s suite) refused() {
	s.txn(s.put("a", "1"))
	before := s.revision()
	all := mvcc.Op{Delete: &mvcc.DeleteRequest{Key: s.key(""), End: s.end()}}
	for _, c := range []struct {
		err error
		ops []mvcc.Op
	}{
		{mvcc.ErrDuplicateKey, []mvcc.Op{s.put("b", "1"), s.put("b", "2")}},
		{mvcc.ErrDuplicateKey, []mvcc.Op{s.put("b", "1"), all}},
		{mvcc.ErrDuplicateKey, []mvcc.Op{all, {Txn: &mvcc.TxnRequest{Else: []mvcc.Op{s.put("b", "1")}}}}},
		{mvcc.ErrEmptyKey, []mvcc.Op{s.put("b", "1"), {Put: &mvcc.PutRequest{}}}},
		{mvcc.ErrEmptyKey, []mvcc.Op{s.put("b", "1"), {Delete: &mvcc.DeleteRequest{}}}},
		{mvcc.ErrInvalidOp, []mvcc.Op{s.put("b", "1"), {}}},
		{mvcc.ErrKeyNotFound, []mvcc.Op{s.put("b", "1"), {Put: &mvcc.PutRequest{Key: s.key("none"), IgnoreValue: true}}}},
		{mvcc.ErrValueProvided, []mvcc.Op{{Put: &mvcc.PutRequest{Key: s.key("a"), Value: []byte("1"), IgnoreValue: true}}}},
		{mvcc.ErrLeaseProvided, []mvcc.Op{{Put: &mvcc.PutRequest{Key: s.key("a"), Lease: 1, IgnoreLease: true}}}},
		{mvcc.ErrLeaseNotFound, []mvcc.Op{s.put("b", "1"), {Put: &mvcc.PutRequest{Key: s.key("c"), Lease: 4711}}}},
		{mvcc.ErrFutureRevision, []mvcc.Op{s.put("b", "1"), {Range: &mvcc.RangeRequest{Key: s.key("a"), Revision: before + 1000}}}},
	} {
		_, err := s.store.Txn(s.Context(), mvcc.TxnRequest{Then: c.ops})
		require.ErrorIs(s, err, c.err)
	}
	require.Equal(s, before, s.revision())
	require.Equal(s, "a=1", s.show(s.list(mvcc.RangeRequest{}).KVs))
}

func (s suite) txnSize() {
	var ops []mvcc.Op
	for i := range mvcc.MaxTxnOps {
		ops = append(ops, s.put(fmt.Sprintf("%03d", i), ""))
	}
	s.txn(ops...)
	require.EqualValues(s, mvcc.MaxTxnOps, s.list(mvcc.RangeRequest{}).Count)
	_, err := s.store.Txn(s.Context(), mvcc.TxnRequest{Then: append(ops, s.put("more", ""))})
	require.ErrorIs(s, err, mvcc.ErrTooManyOps)

	// An object of Kubernetes may have a little less than 1.5 MiB.
	value := bytes.Repeat([]byte("x"), 1400<<10)
	s.txn(mvcc.Op{Put: &mvcc.PutRequest{Key: s.key("big"), Value: value}})
	require.Equal(s, value, s.one("big", 0).Value)
}
