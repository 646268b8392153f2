package mvcc

// writeTxn runs one transaction. It lives inside Apply, so it has the store to itself.
//
// A transaction runs in three steps, so that it changes everything or nothing: choose the branches
// by evaluating all compares, nested ones too, against the state before; check the operations on
// these branches; then do them, which cannot fail any more. Operations see what earlier ones of the
// same transaction did.
type writeTxn struct {
	s         *Store
	cause     Cause
	main      int64 // main revision of what this transaction writes
	sub       int32 // sub revision of the next change
	first     int   // where in the tail stands what it has written
	fileTx    *view // history before this transaction, opened when something old is read
	allotment allotment
}

// newWriteTxn returns what runs transactions, one after the other: those of one raft entry.
func newWriteTxn(s *Store) *writeTxn { return &writeTxn{s: s} }

// begin begins a transaction, and end ends it: what was written becomes the newest revision. Nothing written is
// no revision.
func (t *writeTxn) begin() {
	t.main, t.sub, t.first = t.s.meta.revision+1, 0, len(t.s.tail.records)
}

func (t *writeTxn) end() {
	if t.fileTx != nil {
		t.fileTx.close()
		t.fileTx = nil
	}
	if t.sub > 0 {
		t.s.meta.revision = t.main
		t.s.watchers.notify(t.s.tail.records[t.first:])
	}
}

// branch is the way a transaction goes: which of its lists, and the branches of the transactions in it.
type branch struct {
	succeeded bool
	ops       []Op
	nested    []branch // by position in ops, for those that are transactions; nil if none is
}

func (t *writeTxn) run(req *TxnRequest) (TxnResult, error) {
	t.begin()
	defer t.end()
	b := t.choose(req)
	if err := t.check(b); err != nil {
		return TxnResult{}, err
	}
	return t.do(b), nil
}

func (t *writeTxn) choose(req *TxnRequest) branch {
	b := branch{succeeded: true, ops: req.Then}
	for _, c := range req.Compare {
		if !t.holds(c) {
			b.succeeded, b.ops = false, req.Else
			break
		}
	}
	for i, op := range b.ops {
		if op.Txn == nil {
			continue
		}
		if b.nested == nil {
			b.nested = make([]branch, len(b.ops))
		}
		b.nested[i] = t.choose(op.Txn)
	}
	return b
}

// check refuses what Validate could not see without the store.
func (t *writeTxn) check(b branch) error {
	for i, op := range b.ops {
		var err error
		switch {
		case op.Range != nil:
			err = t.s.checkRevision(op.Range.Revision)
		case op.Put != nil:
			err = t.checkPut(op.Put)
		case op.Txn != nil:
			err = t.check(b.nested[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *writeTxn) checkPut(p *PutRequest) error {
	if p.Lease != 0 && !t.s.leases.exists(p.Lease) {
		return ErrLeaseNotFound
	}
	if p.IgnoreValue || p.IgnoreLease {
		k := t.s.index.get(p.Key)
		if k == nil || k.open() == nil {
			return ErrKeyNotFound
		}
	}
	return nil
}

func (t *writeTxn) do(b branch) TxnResult {
	results := t.allotment.opResults(len(b.ops))
	for i, op := range b.ops {
		switch {
		case op.Range != nil:
			results[i].Range = t.read(op.Range)
		case op.Put != nil:
			results[i].Put = t.put(op.Put)
		case op.Delete != nil:
			results[i].Delete = t.delete(op.Delete)
		case op.Txn != nil:
			nested := t.do(b.nested[i])
			results[i].Txn = &nested
		}
	}
	return TxnResult{Revision: t.revision(), Succeeded: b.succeeded, Ops: results}
}

// revision is the newest one, with what this transaction has written so far.
func (t *writeTxn) revision() int64 {
	if t.sub > 0 {
		return t.main
	}
	return t.main - 1
}

func (t *writeTxn) read(req *RangeRequest) *RangeResult {
	found := t.s.index.find(*req, t.revision())
	res := must(found.result(t.view()))
	return &res
}

// putAlone is the result of puts that have nothing to tell.
var putAlone PutResult

func (t *writeTxn) put(req *PutRequest) *PutResult {
	k := t.s.index.obtain(req.Key)
	r := t.allotment.record()
	r.kv = KeyValue{Key: req.Key, Value: req.Value, Lease: req.Lease}
	var prev *KeyValue
	if old, ok := k.current(); ok {
		r.prev = old.rev
		if req.PrevKV || req.IgnoreValue || req.IgnoreLease {
			kv := must(t.view().keyValue(old.rev, false))
			prev = &kv
		}
	}
	if req.IgnoreValue {
		r.kv.Value = prev.Value
	}
	if req.IgnoreLease {
		r.kv.Lease = prev.Lease
	}
	v := k.put(t.next())
	r.rev = v.rev
	r.kv.ModRevision, r.kv.CreateRevision, r.kv.Version = t.main, v.created, v.number
	t.write(r)
	t.s.leases.attach(k, r.kv.Lease)
	if !req.PrevKV || prev == nil {
		return &putAlone
	}
	return &PutResult{PrevKV: prev}
}

func (t *writeTxn) delete(req *DeleteRequest) *DeleteResult {
	type doomed struct {
		k *keyIndex
		v version
	}
	var found []doomed // first found, then deleted: the scan must not see its own deletes
	t.s.index.scan(keyRange{req.Key, req.End}, t.main, func(k *keyIndex, v version) bool {
		found = append(found, doomed{k, v})
		return true
	})
	res := &DeleteResult{Deleted: int64(len(found))}
	for _, d := range found {
		if req.PrevKV {
			res.PrevKVs = append(res.PrevKVs, must(t.view().keyValue(d.v.rev, false)))
		}
		t.deleteKey(d.k, d.v)
	}
	return res
}

// deleteKey deletes a key whose current version is v.
func (t *writeTxn) deleteKey(k *keyIndex, v version) {
	rev := t.next()
	k.tombstone(rev)
	r := t.allotment.record()
	*r = record{rev: rev, prev: v.rev, tombstone: true, kv: KeyValue{Key: []byte(k.key), ModRevision: t.main}}
	t.write(r)
	t.s.leases.attach(k, 0)
}

func (t *writeTxn) next() Revision {
	rev := Revision{Main: t.main, Sub: t.sub}
	t.sub++
	return rev
}

func (t *writeTxn) write(r *record) {
	r.cause = t.cause
	r.seal()
	t.s.tail.add(r)
}

// view looks at everything up to and including what this transaction has written so far.
func (t *writeTxn) view() *view {
	if t.fileTx == nil {
		t.fileTx = must(t.s.newView(false))
	}
	t.fileTx.tail = t.s.tail.records
	return t.fileTx
}
