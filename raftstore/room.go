package raftstore

import "kontiki/mvcc"

// room is where the requests of one entry are decoded to. Nearly all proposals are transactions of one operation, so many
// share one piece of memory, in place of several for each: less to allocate and to collect, on every member.
type room struct {
	txns     []mvcc.TxnRequest
	compares []mvcc.Compare
	ops      []mvcc.Op
	puts     []mvcc.PutRequest
	ranges   []mvcc.RangeRequest
	each     int // how many a piece has room for
}

// maxRoom bounds how much is allocated before it is known to be needed.
const maxRoom = 256

// newRoom makes room for an entry of so many proposals.
func newRoom(proposals int) *room { return &room{each: min(proposals, maxRoom)} }

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
	if d.room == nil {
		return &mvcc.TxnRequest{}
	}
	return &one(&d.room.txns, d.room.each)[0]
}

func (d *decoder) newPut() *mvcc.PutRequest {
	if d.room == nil {
		return &mvcc.PutRequest{}
	}
	return &one(&d.room.puts, d.room.each)[0]
}

func (d *decoder) newRange() *mvcc.RangeRequest {
	if d.room == nil {
		return &mvcc.RangeRequest{}
	}
	return &one(&d.room.ranges, d.room.each)[0]
}

func (d *decoder) newCompares(n int) []mvcc.Compare {
	if d.room == nil || n != 1 {
		return make([]mvcc.Compare, n)
	}
	return one(&d.room.compares, d.room.each)
}

// newOps returns an empty list with room for n operations.
func (d *decoder) newOps(n int) []mvcc.Op {
	if d.room == nil || n != 1 {
		return make([]mvcc.Op, 0, n)
	}
	return one(&d.room.ops, d.room.each)[:0]
}
