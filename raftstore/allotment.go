package raftstore

import "kontiki/mvcc"

// allotment is where the requests of one entry are decoded to. Nearly all proposals are transactions of one operation, so many
// share one piece of memory, in place of several for each: less to allocate and to collect, on every member.
type allotment struct {
	txns     []mvcc.TxnRequest
	compares []mvcc.Compare
	ops      []mvcc.Op
	puts     []mvcc.PutRequest
	ranges   []mvcc.RangeRequest
	each     int // how many a piece has room for
}

// maxAllotted bounds how much is allocated before it is known to be needed.
const maxAllotted = 256

// newAllotment makes room for an entry of so many proposals.
func newAllotment(proposals int) *allotment { return &allotment{each: min(proposals, maxAllotted)} }

// one returns room for one element of a piece, and makes a new piece when it is used up.
func one[T any](piece *[]T, each int) []T {
	if len(*piece) == 0 {
		*piece = make([]T, max(each, 1))
	}
	x := (*piece)[:1:1]
	*piece = (*piece)[1:]
	return x
}

func (d *decoder) newTxn() *mvcc.TxnRequest {
	if d.allotment == nil {
		return &mvcc.TxnRequest{}
	}
	return &one(&d.allotment.txns, d.allotment.each)[0]
}

func (d *decoder) newPut() *mvcc.PutRequest {
	if d.allotment == nil {
		return &mvcc.PutRequest{}
	}
	return &one(&d.allotment.puts, d.allotment.each)[0]
}

func (d *decoder) newRange() *mvcc.RangeRequest {
	if d.allotment == nil {
		return &mvcc.RangeRequest{}
	}
	return &one(&d.allotment.ranges, d.allotment.each)[0]
}

func (d *decoder) newCompares(n int) []mvcc.Compare {
	if d.allotment == nil || n != 1 {
		return make([]mvcc.Compare, n)
	}
	return one(&d.allotment.compares, d.allotment.each)
}

// newOps returns an empty list with room for n operations.
func (d *decoder) newOps(n int) []mvcc.Op {
	if d.allotment == nil || n != 1 {
		return make([]mvcc.Op, 0, n)
	}
	return one(&d.allotment.ops, d.allotment.each)[:0]
}
