package mvcc

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestModel does random things to a store and to the model beside it, and compares all answers, for
// ever over. Among these things are compaction, closing and opening, a crash, and moving to another
// store by a snapshot.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newRandomStore(rt)
		defer x.close()
		rt.Repeat(map[string]func(*rapid.T){
			"":        x.compareHead,
			"txn":     x.txn,
			"lease":   x.lease,
			"compact": x.compact,
			"range":   x.readAnywhere,
			"watch":   x.watch,
			"follow":  x.follow,
			"sync":    func(*rapid.T) { require.NoError(x.t, x.s.Sync()) },
			"sweep":   x.sweep,
			"reopen":  x.reopen,
			"crash":   x.crash,
			"move":    x.move,
			"defrag":  func(*rapid.T) { require.NoError(x.t, x.s.Defragment(context.Background())) },
		})
	})
}

// randomStore is a store, its model, and the log that both came from.
type randomStore struct {
	t    *rapid.T
	dir  string
	n    int // names the files
	s    *Store
	m    *model
	log  []Command
	opts Options
	fol  *follower
}

func newRandomStore(t *rapid.T) *randomStore {
	dir, err := os.MkdirTemp("", "mvcc")
	require.NoError(t, err)
	x := &randomStore{t: t, dir: dir, m: newModel(), opts: Options{
		// All ways to history get their turn: a tail of nearly nothing, and one that holds all.
		TailBytes:      rapid.SampledFrom([]int{1, 500, 1 << 20}).Draw(t, "tail"),
		CommitInterval: rapid.SampledFrom([]time.Duration{time.Microsecond, time.Hour}).Draw(t, "interval"),
	}}
	x.open(x.path())
	return x
}

func (x *randomStore) path() string { return filepath.Join(x.dir, string(rune('A'+x.n))) }

func (x *randomStore) open(path string) {
	s, err := Open(path, x.opts)
	require.NoError(x.t, err)
	x.s = s
	x.fol = nil
	x.replay()
}

// replay does what raft does after a start: it applies the whole log again.
func (x *randomStore) replay() {
	for i, c := range x.log {
		x.s.Apply(uint64(i+1), c)
	}
}

func (x *randomStore) close() {
	require.NoError(x.t, x.s.Close())
	require.NoError(x.t, os.RemoveAll(x.dir))
}

func (x *randomStore) apply(c Command) Result {
	x.log = append(x.log, c)
	return x.s.Apply(uint64(len(x.log)), c)[0]
}

func (x *randomStore) txn(t *rapid.T) {
	req := drawTxn(t, x.m, 2)
	got := x.apply(Command{Txn: req})
	want, err := x.m.txn(req)
	require.Equal(t, err, got.Err)
	if err == nil {
		require.Equal(t, normal(want), normal(got.Txn))
	}
	if req.ReadOnly() {
		again, err := x.s.ReadTxn(req)
		require.Equal(t, got.Err, err)
		if err == nil {
			require.Equal(t, normal(want), normal(again))
		}
	}
}

func (x *randomStore) lease(t *rapid.T) {
	id := drawLease(t)
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		g := &LeaseGrant{ID: id, TTLSeconds: rapid.Int64Range(1, 100).Draw(t, "ttl")}
		require.Equal(t, x.m.grant(g), x.apply(Command{Grant: g}).Err)
	case 1:
		want := x.m.revoke(id)
		got := x.apply(Command{Revoke: id})
		require.Equal(t, want, got.Err)
		require.Equal(t, x.m.revision(), got.Txn.Revision)
	case 2:
		c := LeaseCheckpoint{ID: id, RemainingMillis: rapid.Int64Range(0, 100).Draw(t, "left")}
		x.m.checkpoint(c)
		require.NoError(t, x.apply(Command{Checkpoint: []LeaseCheckpoint{c}}).Err)
	}
}

func drawLease(t *rapid.T) int64 { return rapid.SampledFrom([]int64{1, 2, -3}).Draw(t, "lease") }

func (x *randomStore) compareLeases(t *rapid.T) {
	all := x.s.Leases()
	require.Len(t, all, len(x.m.leases))
	for _, l := range all {
		require.Equal(t, x.m.leases[l.ID], l)
		require.Equal(t, x.m.attached(l.ID), x.s.LeaseKeys(l.ID))
	}
}

func (x *randomStore) compact(t *rapid.T) {
	rev := drawRevision(t, x.m)
	require.Equal(t, x.m.compact(rev), x.apply(Command{Compact: rev}).Err)
}

// sweep waits until the last compaction is done physically.
func (x *randomStore) sweep(t *rapid.T) {
	waitSwept(t, x.s)
}

func waitSwept(t require.TestingT, s *Store) {
	require.Eventually(t, func() bool {
		st, err := s.Stats()
		require.NoError(t, err)
		return st.Swept == st.Compacted
	}, 10*time.Second, time.Millisecond)
}

func (x *randomStore) compareHead(t *rapid.T) {
	req := RangeRequest{Key: []byte{0}, End: []byte{0}}
	want, _ := x.m.read(req)
	got, err := x.s.Range(req)
	require.NoError(t, err)
	require.Equal(t, normalRange(want), normalRange(got))
	x.compareLeases(t)
}

func (x *randomStore) readAnywhere(t *rapid.T) {
	req := drawRange(t, x.m)
	want, wantErr := x.m.read(req)
	got, err := x.s.Range(req)
	require.Equal(t, wantErr, err)
	require.Equal(t, normalRange(want), normalRange(got))
}

// watch watches from some revision up to now.
func (x *randomStore) watch(t *rapid.T) {
	key, end := drawKeys(t)
	req := WatchRequest{Key: key, End: end, StartRevision: drawStart(t, x.m), PrevKV: rapid.Bool().Draw(t, "prevKV"), Progress: true}
	req.PartialPrevKV = rapid.Bool().Draw(t, "partial")
	req.NoPut, req.NoDelete = rapid.IntRange(0, 4).Draw(t, "noPut") == 0, rapid.IntRange(0, 4).Draw(t, "noDelete") == 0
	f := newFollower(x, req)
	defer f.stop()
	if req.StartRevision < x.m.compacted || req.PrevKV && !req.PartialPrevKV && req.StartRevision == x.m.compacted {
		b := f.batch(t)
		require.ErrorIs(t, b.Err, ErrCompacted)
		require.Equal(t, x.m.compacted, b.CompactRevision)
		return
	}
	f.catchUp(t)
}

// follow keeps one watch open over many operations, and looks at it now and then.
func (x *randomStore) follow(t *rapid.T) {
	if x.fol == nil {
		key, end := drawKeys(t)
		x.fol = newFollower(x, WatchRequest{Key: key, End: end, PrevKV: true, StartRevision: x.m.revision() + 1, Progress: true})
		return
	}
	x.fol.catchUp(t)
}

func (x *randomStore) reopen(t *rapid.T) {
	require.NoError(t, x.s.Close())
	x.open(x.path())
}

// crash leaves the store alone with what is in its file now, and opens that.
func (x *randomStore) crash(t *rapid.T) {
	x.s.commitMu.Lock() // a moment between two disk writes; TestPowerCut is about those within
	b, err := os.ReadFile(x.path())
	x.s.commitMu.Unlock()
	require.NoError(t, err)
	require.NoError(t, x.s.Close())
	x.n++
	require.NoError(t, os.WriteFile(x.path(), b, 0o600))
	x.open(x.path())
}

// move brings the content to another store, one that may have some of it, by a snapshot.
func (x *randomStore) move(t *rapid.T) {
	var b bytes.Buffer
	require.NoError(t, x.s.WriteSnapshot(&b))
	require.NoError(t, x.s.Close())
	x.n++
	s, err := Open(x.path(), x.opts)
	require.NoError(t, err)
	for i, c := range x.log[:rapid.IntRange(0, len(x.log)).Draw(t, "behind")] {
		s.Apply(uint64(i+1), c)
	}
	require.NoError(t, s.Restore(&b))
	require.EqualValues(t, len(x.log), s.Applied())
	x.s, x.fol = s, nil
}

// follower is a watch whose events are checked against the model.
type follower struct {
	x    *randomStore
	req  WatchRequest
	stop context.CancelFunc
	out  <-chan WatchBatch
	seen int64 // everything up to here was delivered
}

func newFollower(x *randomStore, req WatchRequest) *follower {
	ctx, cancel := context.WithCancel(context.Background())
	return &follower{x: x, req: req, stop: cancel, out: x.s.Watch(ctx, req), seen: req.StartRevision - 1}
}

func (f *follower) batch(t *rapid.T) WatchBatch {
	f.x.s.RequestProgress()
	select {
	case b, ok := <-f.out:
		require.True(t, ok)
		return b
	case <-time.After(time.Minute):
		t.Fatal("watch is silent")
		return WatchBatch{}
	}
}

// catchUp reads batches until the watch is at the newest revision, and compares them with the model:
// complete, in order, nothing twice, no revision split. A watch that a compaction passed may end.
func (f *follower) catchUp(t *rapid.T) {
	for f.seen < f.x.m.revision() {
		b := f.batch(t)
		if b.Err != nil {
			require.ErrorIs(t, b.Err, ErrCompacted)
			require.LessOrEqual(t, f.seen, f.x.m.compacted)
			f.x.fol = nil
			return
		}
		req := f.req
		req.StartRevision = f.seen + 1
		var want []Event
		for _, e := range f.x.m.events(req) {
			if e.KV.ModRevision <= b.Revision {
				want = append(want, e)
			}
		}
		require.Equal(t, want, inOrder(t, b.Events))
		require.True(t, b.Revision > f.seen || len(b.Events) == 0 && b.Revision == f.seen, "revision goes on")
		f.seen = b.Revision
	}
}

// inOrder checks that revisions ascend, and brings the events of one revision into key order.
func inOrder(t *rapid.T, events []Event) []Event {
	byRevision := func(a, b Event) int { return cmp.Compare(a.KV.ModRevision, b.KV.ModRevision) }
	require.True(t, slices.IsSortedFunc(events, byRevision))
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(byRevision(a, b), bytes.Compare(a.KV.Key, b.KV.Key))
	})
	for i := range events {
		events[i].KV = normalKV(events[i].KV)
		if p := events[i].PrevKV; p != nil {
			kv := normalKV(*p)
			events[i].PrevKV = &kv
		}
	}
	return events
}

func drawRevision(t *rapid.T, m *model) int64 {
	return rapid.Int64Range(0, m.revision()+1).Draw(t, "revision")
}

// drawStart prefers the compacted revision, where most is to be done wrong.
func drawStart(t *rapid.T, m *model) int64 {
	anywhere := rapid.Int64Range(1, m.revision()+1)
	return rapid.OneOf(anywhere, rapid.Just(max(m.compacted, 1))).Draw(t, "start")
}

func drawKeys(t *rapid.T) (key, end []byte) {
	key = []byte(rapid.SampledFrom(universe).Draw(t, "key"))
	switch rapid.IntRange(0, 5).Draw(t, "range") {
	case 0:
		return key, []byte{0}
	case 1, 2:
		return key, []byte(rapid.SampledFrom(universe).Draw(t, "end"))
	default:
		return key, nil
	}
}

func drawRange(t *rapid.T, m *model) RangeRequest {
	key, end := drawKeys(t)
	bound := func(name string) int64 {
		if rapid.IntRange(0, 5).Draw(t, name) > 0 {
			return 0
		}
		return drawRevision(t, m)
	}
	return RangeRequest{
		MinModRevision: bound("minMod"), MaxModRevision: bound("maxMod"),
		MinCreateRevision: bound("minCreate"), MaxCreateRevision: bound("maxCreate"),
		SortBy: SortTarget(rapid.IntRange(0, int(SortByValue)).Draw(t, "sort")), Descending: rapid.Bool().Draw(t, "descending"),
		Key: key, End: end, Revision: drawRevision(t, m), Limit: rapid.Int64Range(0, 3).Draw(t, "limit"),
		KeysOnly: rapid.Bool().Draw(t, "keysOnly"), CountOnly: rapid.IntRange(0, 4).Draw(t, "countOnly") == 0,
	}
}

func drawTxn(t *rapid.T, m *model, depth int) *TxnRequest {
	req := &TxnRequest{}
	for range rapid.IntRange(0, 2).Draw(t, "compares") {
		req.Compare = append(req.Compare, drawCompare(t, m))
	}
	for range rapid.IntRange(0, 3).Draw(t, "then") {
		req.Then = append(req.Then, drawOp(t, m, depth))
	}
	for range rapid.IntRange(0, 1).Draw(t, "else") {
		req.Else = append(req.Else, drawOp(t, m, depth))
	}
	return req
}

func drawCompare(t *rapid.T, m *model) Compare {
	key, end := drawKeys(t)
	c := Compare{
		Key: key, End: end,
		Target: CompareTarget(rapid.IntRange(0, int(CompareValue)).Draw(t, "target")),
		Result: CompareResult(rapid.IntRange(0, int(NotEqual)).Draw(t, "result")),
	}
	if c.Target == CompareValue {
		c.Value = drawValue(t)
	} else {
		c.Number = drawRevision(t, m)
	}
	return c
}

func drawValue(t *rapid.T) []byte {
	return rapid.SampledFrom([][]byte{nil, []byte("x"), []byte("y"), []byte("a longer value")}).Draw(t, "value")
}

func drawOp(t *rapid.T, m *model, depth int) Op {
	key, end := drawKeys(t)
	switch kind := rapid.IntRange(0, 9).Draw(t, "op"); {
	case kind < 5:
		p := &PutRequest{Key: key, PrevKV: rapid.Bool().Draw(t, "prevKV")}
		if p.IgnoreValue = rapid.IntRange(0, 4).Draw(t, "ignoreValue") == 0; !p.IgnoreValue {
			p.Value = drawValue(t)
		}
		if p.IgnoreLease = rapid.IntRange(0, 4).Draw(t, "ignoreLease") == 0; !p.IgnoreLease {
			p.Lease = rapid.SampledFrom([]int64{0, 1, -3}).Draw(t, "lease")
		}
		return Op{Put: p}
	case kind < 7:
		return Op{Delete: &DeleteRequest{Key: key, End: end, PrevKV: rapid.Bool().Draw(t, "prevKV")}}
	case kind < 9 || depth == 0:
		r := drawRange(t, m)
		return Op{Range: &r}
	default:
		return Op{Txn: drawTxn(t, m, depth-1)}
	}
}

// normal makes empty and missing slices the same.
func normal(r TxnResult) TxnResult {
	ops := []OpResult{}
	for _, op := range r.Ops {
		if op.Range != nil {
			n := normalRange(*op.Range)
			op.Range = &n
		}
		if op.Put != nil && op.Put.PrevKV != nil {
			kv := normalKV(*op.Put.PrevKV)
			op.Put = &PutResult{PrevKV: &kv}
		}
		if op.Delete != nil {
			op.Delete = &DeleteResult{Deleted: op.Delete.Deleted, PrevKVs: normalKVs(op.Delete.PrevKVs)}
		}
		if op.Txn != nil {
			n := normal(*op.Txn)
			op.Txn = &n
		}
		ops = append(ops, op)
	}
	r.Ops = ops
	return r
}

func normalRange(r RangeResult) RangeResult {
	r.KVs = normalKVs(r.KVs)
	return r
}

func normalKVs(kvs []KeyValue) []KeyValue {
	out := []KeyValue{}
	for _, kv := range kvs {
		out = append(out, normalKV(kv))
	}
	return out
}

func normalKV(kv KeyValue) KeyValue {
	if len(kv.Value) == 0 {
		kv.Value = nil
	}
	return kv
}
