package raftstore

import "kontiki/mvcc"

// Results travel only between members, as answers to forwarded proposals; they are never stored.

func (e *encoder) result(r *mvcc.TxnResult) {
	e.varint(r.Revision)
	e.flags(r.Succeeded)
	e.uvarint(uint64(len(r.Ops)))
	for _, op := range r.Ops {
		switch {
		case op.Range != nil:
			e.byte(opRange)
			e.varint(op.Range.Revision)
			e.varint(op.Range.Count)
			e.flags(op.Range.More)
			e.keyValues(op.Range.KVs)
		case op.Put != nil:
			e.byte(opPut)
			e.flags(op.Put.PrevKV != nil)
			if op.Put.PrevKV != nil {
				e.keyValue(op.Put.PrevKV)
			}
		case op.Delete != nil:
			e.byte(opDelete)
			e.varint(op.Delete.Deleted)
			e.keyValues(op.Delete.PrevKVs)
		case op.Txn != nil:
			e.byte(opTxn)
			e.result(op.Txn)
		}
	}
}

func (d *decoder) result(depth int) mvcc.TxnResult {
	if depth > mvcc.MaxTxnDepth {
		d.fail()
	}
	r := mvcc.TxnResult{Revision: d.varint(), Succeeded: d.flags(1)[0]}
	for range d.count() {
		if d.bad {
			break
		}
		r.Ops = append(r.Ops, d.opResult(depth))
	}
	return r
}

func (d *decoder) opResult(depth int) (op mvcc.OpResult) {
	switch d.byte() {
	case opRange:
		op.Range = &mvcc.RangeResult{Revision: d.varint(), Count: d.varint(), More: d.flags(1)[0], KVs: d.keyValues()}
	case opPut:
		op.Put = &mvcc.PutResult{}
		if d.flags(1)[0] {
			kv := d.keyValue()
			op.Put.PrevKV = &kv
		}
	case opDelete:
		op.Delete = &mvcc.DeleteResult{Deleted: d.varint(), PrevKVs: d.keyValues()}
	case opTxn:
		r := d.result(depth + 1)
		op.Txn = &r
	default:
		d.fail()
	}
	return op
}

func (e *encoder) keyValues(kvs []mvcc.KeyValue) {
	e.uvarint(uint64(len(kvs)))
	for i := range kvs {
		e.keyValue(&kvs[i])
	}
}

func (d *decoder) keyValues() (kvs []mvcc.KeyValue) {
	for range d.count() {
		if d.bad {
			break
		}
		kvs = append(kvs, d.keyValue())
	}
	return kvs
}

func (e *encoder) keyValue(kv *mvcc.KeyValue) {
	e.bytes(kv.Key)
	e.bytes(kv.Value)
	for _, n := range []int64{kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease} {
		e.varint(n)
	}
}

func (d *decoder) keyValue() mvcc.KeyValue {
	return mvcc.KeyValue{
		Key: d.bytes(), Value: d.bytes(),
		CreateRevision: d.varint(), ModRevision: d.varint(), Version: d.varint(), Lease: d.varint(),
	}
}
