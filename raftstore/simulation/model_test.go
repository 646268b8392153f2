package simulation

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"kontiki/mvcc"
)

// state is the content of the store at one revision, in its most obvious form.
type state map[string]mvcc.KeyValue

// read is what a range gives.
func (st state) read(key, end []byte) (kvs []mvcc.KeyValue) {
	for _, k := range slices.Sorted(maps.Keys(st)) {
		if inRange([]byte(k), key, end) {
			kvs = append(kvs, st[k])
		}
	}
	return kvs
}

func inRange(k, key, end []byte) bool {
	if len(end) == 0 {
		return bytes.Equal(k, key)
	}
	return bytes.Compare(k, key) >= 0 && (string(end) == "\x00" || bytes.Compare(k, end) < 0)
}

func (st state) holds(c mvcc.Compare) bool {
	kv, exists := st[string(c.Key)]
	if c.Target == mvcc.CompareValue {
		return exists && bytes.Equal(kv.Value, c.Value)
	}
	number := map[mvcc.CompareTarget]int64{mvcc.CompareCreateRevision: kv.CreateRevision, mvcc.CompareModRevision: kv.ModRevision, mvcc.CompareVersion: kv.Version}
	return number[c.Target] == c.Number
}

// run does a transaction at a revision to a state before it. It returns the state after, the events and the result.
func (st state) run(t *mvcc.TxnRequest, rev int64) (after state, events []mvcc.Event, res mvcc.TxnResult) {
	after = maps.Clone(st)
	res = mvcc.TxnResult{Succeeded: true}
	ops := t.Then
	for _, c := range t.Compare {
		if !st.holds(c) {
			res.Succeeded, ops = false, t.Else
			break
		}
	}
	for _, op := range ops {
		var r mvcc.OpResult
		switch {
		case op.Range != nil:
			kvs := after.read(op.Range.Key, op.Range.End)
			r.Range = &mvcc.RangeResult{KVs: kvs, Count: int64(len(kvs))}
		case op.Put != nil:
			e, prev := after.put(op.Put, rev)
			events = append(events, e)
			r.Put = &mvcc.PutResult{PrevKV: prev}
		case op.Delete != nil:
			gone := after.read(op.Delete.Key, op.Delete.End)
			r.Delete = &mvcc.DeleteResult{Deleted: int64(len(gone)), PrevKVs: gone}
			for _, kv := range gone {
				delete(after, string(kv.Key))
				events = append(events, mvcc.Event{Type: mvcc.DeleteEvent, KV: mvcc.KeyValue{Key: kv.Key, ModRevision: rev}})
			}
		}
		res.Ops = append(res.Ops, r)
	}
	return after, events, res
}

func (st state) put(p *mvcc.PutRequest, rev int64) (e mvcc.Event, prev *mvcc.KeyValue) {
	kv := mvcc.KeyValue{Key: p.Key, Value: p.Value, CreateRevision: rev, ModRevision: rev, Version: 1, Lease: p.Lease}
	if old, exists := st[string(p.Key)]; exists {
		kv.CreateRevision, kv.Version = old.CreateRevision, old.Version+1
		if p.PrevKV {
			prev = &old
		}
	}
	st[string(p.Key)] = kv
	return mvcc.Event{Type: mvcc.PutEvent, KV: kv}, prev
}

// sameResult compares what a transaction answered with what it should have.
func sameResult(want, got mvcc.TxnResult) error {
	if want.Succeeded != got.Succeeded || len(want.Ops) != len(got.Ops) {
		return fmt.Errorf("succeeded is %v with %d results, want %v with %d", got.Succeeded, len(got.Ops), want.Succeeded, len(want.Ops))
	}
	for i := range want.Ops {
		if err := sameOpResult(want.Ops[i], got.Ops[i]); err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
	}
	return nil
}

func sameOpResult(want, got mvcc.OpResult) error {
	switch {
	case (want.Range == nil) != (got.Range == nil) || (want.Put == nil) != (got.Put == nil) || (want.Delete == nil) != (got.Delete == nil):
		return fmt.Errorf("of the wrong kind")
	case want.Range != nil:
		return sameKVs(want.Range.KVs, got.Range.KVs)
	case want.Put != nil:
		return sameKVs(optional(want.Put.PrevKV), optional(got.Put.PrevKV))
	default:
		if want.Delete.Deleted != got.Delete.Deleted {
			return fmt.Errorf("%d deleted, want %d", got.Delete.Deleted, want.Delete.Deleted)
		}
		return sameKVs(want.Delete.PrevKVs, got.Delete.PrevKVs)
	}
}

func optional(kv *mvcc.KeyValue) []mvcc.KeyValue {
	if kv == nil {
		return nil
	}
	return []mvcc.KeyValue{*kv}
}
