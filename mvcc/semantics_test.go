package mvcc

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The cases KV-nn are those of the project's list of bugs that stores like this one have had.

func TestTxnRefusesKeyChangedTwice_KV05_KV06(t *testing.T) {
	nested := func(then, other []Op) Op { return Op{Txn: &TxnRequest{Then: then, Else: other}} }
	for _, c := range []struct {
		name string
		ops  []Op
		want error
	}{
		{"put put", []Op{put("a", "1"), put("a", "2")}, ErrDuplicateKey},
		{"put two keys", []Op{put("a", "1"), put("b", "2")}, nil},
		{"delete point, put", []Op{del("b"), put("b", "1")}, ErrDuplicateKey},
		{"put, delete point", []Op{put("b", "1"), del("b")}, ErrDuplicateKey},
		{"delete prefix, put inside", []Op{delRange("b", "c"), put("b1", "1")}, ErrDuplicateKey},
		{"delete explicit end, put inside", []Op{delRange("a", "z"), put("b", "1")}, ErrDuplicateKey},
		{"delete open end, put inside", []Op{delRange("a", "\x00"), put("b", "1")}, ErrDuplicateKey},
		{"put inside, delete open end", []Op{put("b", "1"), delRange("a", "\x00")}, ErrDuplicateKey},
		{"delete open end, put before it", []Op{delRange("b", "\x00"), put("a", "1")}, nil},
		{"delete explicit end, put at the end", []Op{delRange("a", "b"), put("b", "1")}, nil},
		{"delete delete", []Op{del("a"), del("a")}, nil},
		{"delete ranges that overlap", []Op{delRange("a", "c"), delRange("b", "\x00")}, nil},
		{"branches exclude each other", []Op{nested([]Op{put("a", "1")}, []Op{put("a", "2")})}, nil},
		{"nested and beside", []Op{nested(nil, []Op{put("a", "1")}), put("a", "2")}, ErrDuplicateKey},
		{"nested delete open end and put beside", []Op{put("b", "2"), nested([]Op{delRange("a", "\x00")}, nil)}, ErrDuplicateKey},
		{"within nested else", []Op{nested(nil, []Op{put("a", "1"), put("a", "2")})}, ErrDuplicateKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t, Options{})
			l := &raftLog{s: s}
			l.txn(put("a", "0"))
			require.Equal(t, c.want, l.txn(c.ops...).Err)
			require.Equal(t, c.want, l.apply(Command{Txn: &TxnRequest{Then: c.ops}}).Err)
			never := Compare{Key: []byte("a"), Target: CompareVersion, Number: 99}
			require.Equal(t, c.want, l.apply(Command{Txn: &TxnRequest{Compare: []Compare{never}, Then: c.ops}}).Err, "also in the branch not taken")
			if c.want != nil {
				require.EqualValues(t, 2, s.Revision(), "a refused transaction takes no revision")
				require.Equal(t, "0", string(get(t, s, "a", 0).KVs[0].Value))
			}
		})
	}
}

func TestDeletingAKeyTwiceIsOneEvent_KV06(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1"))
	out := s.Watch(t.Context(), WatchRequest{Key: []byte("a"), StartRevision: 3})
	res := l.txn(del("a"), del("a"), delRange("a", "\x00"))
	require.NoError(t, res.Err)
	require.EqualValues(t, 3, res.Txn.Revision)
	require.EqualValues(t, 1, res.Txn.Ops[0].Delete.Deleted)
	require.EqualValues(t, 0, res.Txn.Ops[1].Delete.Deleted)
	require.Len(t, (<-out).Events, 1)
	require.EqualValues(t, 3, l.txn(del("a")).Txn.Revision, "deleting nothing takes no revision")
}

func TestWatchFromDeleteAtCompactRevision_KV01(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mvcc.db")
	s, err := Open(path, Options{TailBytes: 1})
	require.NoError(t, err)
	l := &raftLog{s: s}
	for i := range 3 {
		l.txn(put("k", fmt.Sprint(i)))
	}
	deleted := l.txn(del("k")).Txn.Revision
	l.txn(put("k", "again"))
	require.NoError(t, l.apply(Command{Compact: deleted}).Err)
	check := func(s *Store) {
		waitSwept(t, s)
		events := take(t, s.Watch(t.Context(), WatchRequest{Key: []byte("k"), StartRevision: deleted}), 2)
		require.Equal(t, DeleteEvent, events[0].Type)
		require.Equal(t, deleted, events[0].KV.ModRevision)
		require.Equal(t, PutEvent, events[1].Type)
		require.EqualValues(t, 1, events[1].KV.Version)
		require.Empty(t, get(t, s, "k", deleted).KVs)
		// The version that was deleted is gone, so a watch that wants it is refused as a whole.
		b := <-s.Watch(t.Context(), WatchRequest{Key: []byte("k"), StartRevision: deleted, PrevKV: true})
		require.ErrorIs(t, b.Err, ErrCompacted)
	}
	check(s)
	require.NoError(t, s.Close())
	s, err = Open(path, Options{})
	require.NoError(t, err)
	defer s.Close()
	check(s)
	// One compaction further the tombstone is not needed any more.
	l.s = s
	require.NoError(t, l.apply(Command{Compact: deleted + 1}).Err)
	waitSwept(t, s)
	require.Len(t, s.index.get([]byte("k")).generations, 1)
	require.Len(t, fileRecords(t, s), 1)
}

func TestCurrentReadAfterAllWasDeletedAndCompacted_KV03(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mvcc.db")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	l := &raftLog{s: s}
	require.NoError(t, l.apply(Command{Compact: 1}).Err, "an empty store can be compacted")
	require.Empty(t, get(t, s, "k", 0).KVs)
	l.txn(put("k", "v"))
	head := l.txn(del("k")).Txn.Revision
	require.NoError(t, l.apply(Command{Compact: head}).Err)
	waitSwept(t, s)
	require.Equal(t, RangeResult{Revision: head, KVs: []KeyValue{}}, get(t, s, "k", 0))
	require.NoError(t, s.Close())

	s, err = Open(path, Options{})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, RangeResult{Revision: head, KVs: []KeyValue{}}, get(t, s, "k", 0))
	l.s = s
	require.Equal(t, head+1, l.txn(put("k", "v")).Txn.Revision, "revisions never go back")
}

func TestProgressOnQuietKey_KV09(t *testing.T) {
	s := openStore(t, Options{ProgressInterval: time.Hour})
	l := &raftLog{s: s}
	head := l.txn(put("other", "1")).Txn.Revision
	out := s.Watch(t.Context(), WatchRequest{Key: []byte("quiet"), StartRevision: head, Progress: true})
	b := <-out // without waiting for the interval: a watch says at once how far it is
	require.Empty(t, b.Events)
	require.GreaterOrEqual(t, b.Revision, head)

	head = l.txn(put("other", "2")).Txn.Revision
	s.RequestProgress()
	require.Equal(t, WatchBatch{Revision: head}, <-out)
}

func TestStuckWatcherHoldsNobodyUp_KV10(t *testing.T) {
	s := openStore(t, Options{TailBytes: 2000})
	l := &raftLog{s: s}
	stuck := s.Watch(t.Context(), WatchRequest{Key: []byte("k"), StartRevision: 2})
	var others []<-chan WatchBatch
	for range 49 {
		others = append(others, s.Watch(t.Context(), WatchRequest{Key: []byte("k"), Progress: true}))
	}
	for i := range 3000 {
		l.txn(put("k", fmt.Sprint(i)))
	}
	for _, out := range others {
		require.Len(t, take(t, out, 3000), 3000)
	}
	require.NoError(t, s.Sync())
	st, err := s.Stats()
	require.NoError(t, err)
	require.LessOrEqual(t, st.TailBytes, 2000, "nothing is kept in memory for who is slow (KV-11)")
	events := take(t, stuck, 3000) // it wakes up, and has missed nothing
	require.EqualValues(t, 2, events[0].KV.ModRevision)
	require.EqualValues(t, 3001, events[2999].KV.ModRevision)
}

func TestWatchBelowCompactRevisionFailsAtOnce_KV17(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	for range 1000 {
		l.txn(put("k", "v"))
	}
	require.NoError(t, l.apply(Command{Compact: 900}).Err)
	out := s.Watch(t.Context(), WatchRequest{Key: []byte("k"), StartRevision: 500})
	require.Equal(t, WatchBatch{Revision: 1001, Err: ErrCompacted, CompactRevision: 900}, <-out)
	_, open := <-out
	require.False(t, open)
}

// TestIdleWatchOutlivesCompaction: a watch to which nothing happened is at the head, however far
// compaction goes meanwhile.
func TestIdleWatchOutlivesCompaction(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	out := s.Watch(t.Context(), WatchRequest{Key: []byte("quiet"), StartRevision: 2, PrevKV: true})
	for range 10 {
		l.txn(put("other", "v"))
	}
	require.NoError(t, l.apply(Command{Compact: 10}).Err)
	l.txn(put("quiet", "v"))
	b := <-out
	require.NoError(t, b.Err)
	require.EqualValues(t, 12, b.Events[0].KV.ModRevision)
}

func TestTransactionIsNeverSplit(t *testing.T) {
	for _, tailBytes := range []int{1, 64 << 20} { // from the file, and from memory
		s := openStore(t, Options{TailBytes: tailBytes})
		l := &raftLog{s: s}
		var ops []Op
		for i := range MaxTxnOps {
			ops = append(ops, put(fmt.Sprintf("k%03d", i), "v"))
		}
		for range 3 * batchRecords / MaxTxnOps {
			require.NoError(t, l.txn(ops...).Err)
		}
		require.NoError(t, s.Sync())
		out := s.Watch(t.Context(), WatchRequest{Key: []byte("k"), End: []byte("l"), StartRevision: 1})
		for next := int64(2); next <= s.Revision(); {
			b := <-out
			require.NotEmpty(t, b.Events)
			require.Zero(t, len(b.Events)%MaxTxnOps)
			require.Equal(t, next, b.Events[0].KV.ModRevision)
			next = b.Events[len(b.Events)-1].KV.ModRevision + 1
		}
	}
}

func TestCompares(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1")) // 2
	l.txn(put("a", "2")) // 3
	require.NoError(t, l.apply(Command{Grant: &LeaseGrant{ID: 7, TTLSeconds: 5}}).Err)
	l.txn(Op{Put: &PutRequest{Key: []byte("b"), Value: []byte("1"), Lease: 7}})
	for _, c := range []struct {
		name string
		cmp  Compare
		want bool
	}{
		{"version", Compare{Key: []byte("a"), Target: CompareVersion, Number: 2}, true},
		{"create", Compare{Key: []byte("a"), Target: CompareCreateRevision, Number: 2}, true},
		{"mod", Compare{Key: []byte("a"), Target: CompareModRevision, Result: Less, Number: 3}, false},
		{"lease", Compare{Key: []byte("b"), Target: CompareLease, Number: 7}, true},
		{"value", Compare{Key: []byte("a"), Target: CompareValue, Result: Greater, Value: []byte("1")}, true},
		{"absent key has version 0", Compare{Key: []byte("x"), Target: CompareVersion, Number: 0}, true},
		{"absent key has no value", Compare{Key: []byte("x"), Target: CompareValue, Result: NotEqual, Value: []byte("1")}, false},
		{"range, all", Compare{Key: []byte("a"), End: []byte{0}, Target: CompareVersion, Result: Greater, Number: 0}, true},
		{"range, not all", Compare{Key: []byte("a"), End: []byte{0}, Target: CompareVersion, Number: 2}, false},
		{"empty range", Compare{Key: []byte("x"), End: []byte("y"), Target: CompareModRevision, Number: 0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, l.apply(Command{Txn: &TxnRequest{Compare: []Compare{c.cmp}}}).Txn.Succeeded)
		})
	}
	require.EqualValues(t, 4, s.Revision())
}

func TestRequestsThatAreRefused(t *testing.T) {
	s := openStore(t, Options{})
	l := &raftLog{s: s}
	l.txn(put("a", "1"))
	l.txn(put("a", "2"))
	require.NoError(t, l.apply(Command{Compact: 3}).Err)
	deep := Op{Range: &RangeRequest{Key: []byte("a")}}
	for range MaxTxnDepth {
		deep = Op{Txn: &TxnRequest{Then: []Op{deep}}}
	}
	for _, c := range []struct {
		name string
		op   Op
		want error
	}{
		{"no key", put("", "v"), ErrEmptyKey},
		{"read no key", Op{Range: &RangeRequest{}}, ErrEmptyKey},
		{"nothing", Op{}, ErrInvalidOp},
		{"two things", Op{Put: &PutRequest{Key: []byte("x")}, Delete: &DeleteRequest{Key: []byte("y")}}, ErrInvalidOp},
		{"read the future", Op{Range: &RangeRequest{Key: []byte("a"), Revision: 4}}, ErrFutureRevision},
		{"read what was compacted", Op{Range: &RangeRequest{Key: []byte("a"), Revision: 2}}, ErrCompacted},
		{"keep the value of nothing", Op{Put: &PutRequest{Key: []byte("x"), IgnoreValue: true}}, ErrKeyNotFound},
		{"keep the lease of nothing", Op{Put: &PutRequest{Key: []byte("x"), IgnoreLease: true}}, ErrKeyNotFound},
		{"keep the value and set it", Op{Put: &PutRequest{Key: []byte("a"), Value: []byte("v"), IgnoreValue: true}}, ErrValueProvided},
		{"keep the lease and set it", Op{Put: &PutRequest{Key: []byte("a"), Lease: 1, IgnoreLease: true}}, ErrLeaseProvided},
		{"attach to no lease", Op{Put: &PutRequest{Key: []byte("a"), Lease: 1}}, ErrLeaseNotFound},
		{"attach nothing to no lease", Op{Put: &PutRequest{Key: []byte("x"), IgnoreValue: true, Lease: 1}}, ErrLeaseNotFound},
		{"sort by what is not there", Op{Range: &RangeRequest{Key: []byte("a"), SortBy: SortByValue + 1}}, ErrInvalidOp},
		{"nested too deep", deep, ErrTooManyOps},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, l.txn(put("b", "never"), c.op).Err)
			require.EqualValues(t, 3, s.Revision())
			require.Empty(t, get(t, s, "b", 0).KVs, "nothing of a refused transaction happens")
		})
	}
	_, err := s.Range(RangeRequest{Key: []byte("a"), Revision: 2})
	require.Equal(t, ErrCompacted, err)
	_, err = s.Range(RangeRequest{Key: []byte("a"), Revision: 4})
	require.Equal(t, ErrFutureRevision, err)
	require.Equal(t, ErrCompacted, l.apply(Command{Compact: 3}).Err)
	require.Equal(t, ErrFutureRevision, l.apply(Command{Compact: 4}).Err)
	require.Equal(t, ErrTooManyOps, l.txn(make([]Op, MaxTxnOps+1)...).Err)
}

// take reads n events.
func take(t *testing.T, out <-chan WatchBatch, n int) (events []Event) {
	t.Helper()
	deadline := time.After(time.Minute)
	for len(events) < n {
		select {
		case b := <-out:
			require.NoError(t, b.Err)
			events = append(events, b.Events...)
		case <-deadline:
			require.Fail(t, "watch is silent", "%d of %d events", len(events), n)
		}
	}
	return events
}
