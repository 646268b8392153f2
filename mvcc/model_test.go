package mvcc

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// model is the store in its most obvious form: for every revision, all there was. It is what the
// random tests compare a Store with.
type model struct {
	snapshots []map[string]KeyValue // by main revision; [0] and [1] are the empty store
	compacted int64
	leases    map[int64]Lease
}

func newModel() *model {
	return &model{snapshots: []map[string]KeyValue{{}, {}}, leases: map[int64]Lease{}}
}

func (m *model) revision() int64 { return int64(len(m.snapshots) - 1) }

func (m *model) compact(rev int64) error {
	switch {
	case rev <= m.compacted:
		return ErrCompacted
	case rev > m.revision():
		return ErrFutureRevision
	}
	m.compacted = rev
	return nil
}

func (m *model) read(req RangeRequest) (RangeResult, error) {
	at := req.Revision
	switch {
	case at <= 0:
		at = m.revision()
	case at > m.revision():
		return RangeResult{}, ErrFutureRevision
	case at < m.compacted:
		return RangeResult{}, ErrCompacted
	}
	res := readFrom(m.snapshots[at], req)
	res.Revision = m.revision()
	return res, nil
}

func (m *model) grant(g *LeaseGrant) error {
	if _, exists := m.leases[g.ID]; exists {
		return ErrLeaseExists
	}
	m.leases[g.ID] = Lease{ID: g.ID, TTLSeconds: g.TTLSeconds}
	return nil
}

func (m *model) revoke(id int64) error {
	if _, exists := m.leases[id]; !exists {
		return ErrLeaseNotFound
	}
	delete(m.leases, id)
	state := maps.Clone(m.snapshots[m.revision()])
	maps.DeleteFunc(state, func(_ string, kv KeyValue) bool { return kv.Lease == id })
	if len(state) < len(m.snapshots[m.revision()]) {
		m.snapshots = append(m.snapshots, state)
	}
	return nil
}

func (m *model) checkpoint(c LeaseCheckpoint) {
	if l, exists := m.leases[c.ID]; exists {
		l.RemainingMillis = c.RemainingMillis
		m.leases[c.ID] = l
	}
}

// attached are the keys of a lease, in order.
func (m *model) attached(id int64) [][]byte {
	keys := [][]byte{}
	for _, key := range universe {
		if kv, exists := m.snapshots[m.revision()][key]; exists && kv.Lease == id {
			keys = append(keys, []byte(key))
		}
	}
	return keys
}

func readFrom(state map[string]KeyValue, req RangeRequest) (res RangeResult) {
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if !inRange(key, req.Key, req.End) {
			continue
		}
		res.Count++
		kv := state[key]
		if req.CountOnly || kv.ModRevision < req.MinModRevision || kv.CreateRevision < req.MinCreateRevision ||
			req.MaxModRevision > 0 && kv.ModRevision > req.MaxModRevision ||
			req.MaxCreateRevision > 0 && kv.CreateRevision > req.MaxCreateRevision {
			continue
		}
		res.KVs = append(res.KVs, kv)
	}
	slices.SortStableFunc(res.KVs, func(a, b KeyValue) int {
		c := map[SortTarget]int{
			SortByKey: bytes.Compare(a.Key, b.Key), SortByVersion: cmp.Compare(a.Version, b.Version),
			SortByCreateRevision: cmp.Compare(a.CreateRevision, b.CreateRevision),
			SortByModRevision:    cmp.Compare(a.ModRevision, b.ModRevision), SortByValue: bytes.Compare(a.Value, b.Value),
		}[req.SortBy]
		if req.Descending {
			return -c
		}
		return c
	})
	if req.Limit > 0 && len(res.KVs) > int(req.Limit) {
		res.KVs, res.More = res.KVs[:req.Limit], true
	}
	if req.KeysOnly {
		for i := range res.KVs {
			res.KVs[i].Value = nil
		}
	}
	return res
}

func inRange(key string, from, end []byte) bool {
	switch {
	case len(end) == 0:
		return key == string(from)
	case string(end) == "\x00":
		return key >= string(from)
	default:
		return key >= string(from) && key < string(end)
	}
}

// modelTxn is a transaction on its way through the model.
type modelTxn struct {
	m      *model
	before map[string]KeyValue
	state  map[string]KeyValue
	wrote  bool
}

func (m *model) txn(req *TxnRequest) (TxnResult, error) {
	if clash(req) {
		return TxnResult{}, ErrDuplicateKey
	}
	now := m.snapshots[m.revision()]
	t := &modelTxn{m: m, before: now, state: maps.Clone(now)}
	if err := t.check(req); err != nil {
		return TxnResult{}, err
	}
	res := t.run(req)
	if t.wrote {
		m.snapshots = append(m.snapshots, t.state)
	}
	return res, nil
}

// clash finds keys that would change twice, one key of the tests' universe after the other.
func clash(req *TxnRequest) bool {
	for _, key := range universe {
		_, _, bad := touches(req.Then, key)
		_, _, bad2 := touches(req.Else, key)
		if bad || bad2 {
			return true
		}
	}
	return false
}

func touches(ops []Op, key string) (puts, deletes, bad bool) {
	for _, op := range ops {
		var p, d, b bool
		switch {
		case op.Put != nil:
			p = string(op.Put.Key) == key
		case op.Delete != nil:
			d = inRange(key, op.Delete.Key, op.Delete.End)
		case op.Txn != nil:
			p1, d1, b1 := touches(op.Txn.Then, key)
			p2, d2, b2 := touches(op.Txn.Else, key)
			p, d, b = p1 || p2, d1 || d2, b1 || b2
		}
		bad = bad || b || p && (puts || deletes) || d && puts
		puts, deletes = puts || p, deletes || d
	}
	return puts, deletes, bad
}

func (t *modelTxn) branch(req *TxnRequest) (bool, []Op) {
	for _, c := range req.Compare {
		if !t.holds(c) {
			return false, req.Else
		}
	}
	return true, req.Then
}

func (t *modelTxn) holds(c Compare) bool {
	found := readFrom(t.before, RangeRequest{Key: c.Key, End: c.End}).KVs
	if len(found) == 0 {
		if c.Target == CompareValue {
			return false
		}
		found = []KeyValue{{}}
	}
	for _, kv := range found {
		number := map[CompareTarget]int64{
			CompareVersion: kv.Version, CompareCreateRevision: kv.CreateRevision,
			CompareModRevision: kv.ModRevision, CompareLease: kv.Lease,
		}[c.Target]
		order := cmp.Compare(number, c.Number)
		if c.Target == CompareValue {
			order = bytes.Compare(kv.Value, c.Value)
		}
		ok := map[CompareResult]bool{Equal: order == 0, Greater: order > 0, Less: order < 0, NotEqual: order != 0}[c.Result]
		if !ok {
			return false
		}
	}
	return true
}

func (t *modelTxn) check(req *TxnRequest) error {
	_, ops := t.branch(req)
	for _, op := range ops {
		switch {
		case op.Range != nil:
			if _, err := t.m.read(*op.Range); err != nil {
				return err
			}
		case op.Put != nil:
			if _, ok := t.m.leases[op.Put.Lease]; op.Put.Lease != 0 && !ok {
				return ErrLeaseNotFound
			}
			if !op.Put.IgnoreValue && !op.Put.IgnoreLease {
				continue
			}
			if _, ok := t.before[string(op.Put.Key)]; !ok {
				return ErrKeyNotFound
			}
		case op.Txn != nil:
			if err := t.check(op.Txn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *modelTxn) revision() int64 {
	if t.wrote {
		return t.m.revision() + 1
	}
	return t.m.revision()
}

func (t *modelTxn) run(req *TxnRequest) (res TxnResult) {
	var ops []Op
	res.Succeeded, ops = t.branch(req)
	for _, op := range ops {
		var r OpResult
		switch {
		case op.Range != nil:
			r.Range = t.read(*op.Range)
		case op.Put != nil:
			r.Put = t.put(op.Put)
		case op.Delete != nil:
			r.Delete = t.delete(op.Delete)
		case op.Txn != nil:
			nested := t.run(op.Txn)
			r.Txn = &nested
		}
		res.Ops = append(res.Ops, r)
	}
	res.Revision = t.revision()
	return res
}

func (t *modelTxn) read(req RangeRequest) *RangeResult {
	state := t.state
	if req.Revision > 0 {
		state = t.m.snapshots[req.Revision]
	}
	res := readFrom(state, req)
	res.Revision = t.revision()
	return &res
}

func (t *modelTxn) put(req *PutRequest) *PutResult {
	old, existed := t.state[string(req.Key)]
	t.wrote = true
	kv := KeyValue{
		Key: req.Key, Value: req.Value, Lease: req.Lease,
		CreateRevision: t.revision(), ModRevision: t.revision(), Version: old.Version + 1,
	}
	if existed {
		kv.CreateRevision = old.CreateRevision
	}
	if req.IgnoreValue {
		kv.Value = old.Value
	}
	if req.IgnoreLease {
		kv.Lease = old.Lease
	}
	t.state[string(req.Key)] = kv
	res := &PutResult{}
	if req.PrevKV && existed {
		res.PrevKV = &old
	}
	return res
}

func (t *modelTxn) delete(req *DeleteRequest) *DeleteResult {
	found := readFrom(t.state, RangeRequest{Key: req.Key, End: req.End}).KVs
	for _, kv := range found {
		delete(t.state, string(kv.Key))
		t.wrote = true
	}
	res := &DeleteResult{Deleted: int64(len(found))}
	if req.PrevKV {
		res.PrevKVs = found
	}
	return res
}

// events are the changes of the keys in a range from revision `from` on, as a watch should see them;
// within a revision in key order.
func (m *model) events(req WatchRequest) (events []Event) {
	for rev := max(req.StartRevision, 2); rev <= m.revision(); rev++ {
		before, after := m.snapshots[rev-1], m.snapshots[rev]
		for _, key := range universe {
			if inRange(key, req.Key, req.End) {
				events = append(events, m.change(key, rev, before, after, req)...)
			}
		}
	}
	return events
}

func (m *model) change(key string, rev int64, before, after map[string]KeyValue, req WatchRequest) []Event {
	old, was := before[key]
	now, is := after[key]
	e := Event{Type: PutEvent, KV: now}
	switch {
	case is && now.ModRevision == rev && !req.NoPut:
	case was && !is && !req.NoDelete:
		e = Event{Type: DeleteEvent, KV: KeyValue{Key: []byte(key), ModRevision: rev}}
	default:
		return nil
	}
	if req.PrevKV && was && rev > m.compacted {
		e.PrevKV = &old
	}
	return []Event{e}
}

// universe is all the keys that the random tests use, in order.
var universe = []string{"a", "b", "c", "ca", "d", "e"}
