package raftstore

import "kontiki/mvcc"

// Kinds of operation in an encoded transaction.
const (
	opRange  = 1
	opPut    = 2
	opDelete = 3
	opTxn    = 4
)

func (e *encoder) txn(r *mvcc.TxnRequest) {
	e.uvarint(uint64(len(r.Compare)))
	for i := range r.Compare {
		e.compare(&r.Compare[i])
	}
	for _, ops := range [][]mvcc.Op{r.Then, r.Else} {
		e.uvarint(uint64(len(ops)))
		for _, op := range ops {
			e.op(op)
		}
	}
}

func (d *decoder) txn(depth int) *mvcc.TxnRequest {
	if depth > mvcc.MaxTxnDepth {
		d.fail()
	}
	r := d.newTxn()
	if n := d.count(); n > 0 {
		r.Compare = d.newCompares(n)
		for i := range r.Compare {
			r.Compare[i] = d.compare()
		}
	}
	r.Then = d.ops(depth)
	r.Else = d.ops(depth)
	return r
}

func (d *decoder) ops(depth int) []mvcc.Op {
	n := d.count()
	if n == 0 {
		return nil
	}
	ops := d.newOps(min(n, mvcc.MaxTxnOps))
	for range n {
		if d.bad {
			return nil
		}
		ops = append(ops, d.op(depth))
	}
	return ops
}

func (e *encoder) compare(c *mvcc.Compare) {
	e.bytes(c.Key)
	e.bytes(c.End)
	e.byte(byte(c.Target))
	e.byte(byte(c.Result))
	if c.Target == mvcc.CompareValue {
		e.bytes(c.Value)
	} else {
		e.varint(c.Number)
	}
}

func (d *decoder) compare() (c mvcc.Compare) {
	c.Key = d.bytes()
	c.End = d.bytes()
	c.Target = mvcc.CompareTarget(d.byte())
	c.Result = mvcc.CompareResult(d.byte())
	if c.Target == mvcc.CompareValue {
		c.Value = d.bytes()
	} else {
		c.Number = d.varint()
	}
	return c
}

func (e *encoder) op(op mvcc.Op) {
	switch {
	case op.Range != nil:
		r := op.Range
		e.byte(opRange)
		e.bytes(r.Key)
		e.bytes(r.End)
		e.varint(r.Revision)
		e.varint(r.Limit)
		ordered, bounded := isOrdered(r), isBounded(r)
		e.flags(r.KeysOnly, r.CountOnly, ordered, bounded)
		if ordered {
			e.byte(byte(r.SortBy))
			e.flags(r.Descending)
		}
		if bounded {
			for _, n := range []int64{r.MinModRevision, r.MaxModRevision, r.MinCreateRevision, r.MaxCreateRevision} {
				e.varint(n)
			}
		}
	case op.Put != nil:
		r := op.Put
		e.byte(opPut)
		e.bytes(r.Key)
		e.bytes(r.Value)
		e.varint(r.Lease)
		e.flags(r.PrevKV, r.IgnoreValue, r.IgnoreLease)
	case op.Delete != nil:
		r := op.Delete
		e.byte(opDelete)
		e.bytes(r.Key)
		e.bytes(r.End)
		e.flags(r.PrevKV)
	case op.Txn != nil:
		e.byte(opTxn)
		e.txn(op.Txn)
	}
}

func isOrdered(r *mvcc.RangeRequest) bool { return r.SortBy != mvcc.SortByKey || r.Descending }

func isBounded(r *mvcc.RangeRequest) bool {
	return r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

func (d *decoder) op(depth int) (op mvcc.Op) {
	switch d.byte() {
	case opRange:
		r := d.newRange()
		r.Key, r.End, r.Revision, r.Limit = d.bytes(), d.bytes(), d.varint(), d.varint()
		f := d.flags(4)
		r.KeysOnly, r.CountOnly = f[0], f[1]
		if f[2] {
			r.SortBy, r.Descending = mvcc.SortTarget(d.byte()), d.flags(1)[0]
		}
		if f[3] {
			r.MinModRevision, r.MaxModRevision = d.varint(), d.varint()
			r.MinCreateRevision, r.MaxCreateRevision = d.varint(), d.varint()
		}
		op.Range = r
	case opPut:
		r := d.newPut()
		r.Key, r.Value, r.Lease = d.bytes(), d.bytes(), d.varint()
		f := d.flags(3)
		r.PrevKV, r.IgnoreValue, r.IgnoreLease = f[0], f[1], f[2]
		op.Put = r
	case opDelete:
		op.Delete = &mvcc.DeleteRequest{Key: d.bytes(), End: d.bytes(), PrevKV: d.flags(1)[0]}
	case opTxn:
		op.Txn = d.txn(depth + 1)
	default:
		d.fail()
	}
	return op
}
