package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// operation is one request of a client and what came of it.
type operation struct {
	id      string // unique; whatever the operation writes has it as value
	process string // that was asked
	local   bool   // a serializable read

	txn  *mvcc.TxnRequest   // one of these two
	read *mvcc.RangeRequest //

	// call and ret are moments of one clock that never shows the same time twice. An operation whose outcome is
	// unknown never returned.
	call, ret int64
	outcome   outcome
	err       error
	txnRes    mvcc.TxnResult
	readRes   mvcc.RangeResult
}

func (o *operation) String() string {
	what := "read"
	if o.txn != nil {
		what = describe(o.txn)
	} else {
		what = fmt.Sprintf("read %s-%s@%d", o.read.Key, o.read.End, o.read.Revision)
	}
	return fmt.Sprintf("%s on %s [%d,%d] %v %s: rev %d %v", o.id, o.process, o.call, o.ret, o.outcome, what, o.revision(), o.err)
}

// revision is the store's revision that the answer tells.
func (o *operation) revision() int64 {
	if o.txn != nil {
		return o.txnRes.Revision
	}
	return o.readRes.Revision
}

type outcome int

const (
	acknowledged outcome = iota
	unknown              // it may or may not have happened, or happen yet
	refused              // it did not happen and never will
)

func (o outcome) String() string { return [...]string{"acknowledged", "unknown", "refused"}[o] }

// record is all operations.
type record struct {
	clock atomic.Int64

	mu         sync.Mutex // guards operations
	operations []*operation
}

// do runs an operation on a process, and remembers it.
func (r *record) do(ctx context.Context, p *process, o *operation) *operation {
	o.process = p.String()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.alive, cancel)()
	o.call = r.clock.Add(1)
	p.gate.pass() // the request waits for the process
	switch {
	case o.local && o.txn != nil:
		o.txnRes, o.err = p.member.LocalTxn(o.txn)
	case o.local:
		o.readRes, o.err = p.member.LocalRange(*o.read)
	case o.txn != nil:
		o.txnRes, o.err = p.member.Txn(ctx, *o.txn)
	default:
		o.readRes, o.err = p.member.Range(ctx, *o.read)
	}
	p.gate.pass() // and so does the answer
	o.ret = r.clock.Add(1)
	o.outcome = judge(o.err)
	if !p.isAlive() { // nobody heard the answer
		o.outcome, o.txnRes, o.readRes = unknown, mvcc.TxnResult{}, mvcc.RangeResult{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, o)
	return o
}

// judge takes the package raftstore at its word.
func judge(err error) outcome {
	switch {
	case err == nil:
		return acknowledged
	case errors.Is(err, raftstore.ErrUnknownOutcome):
		return unknown
	default:
		return refused
	}
}

func (r *record) all() []*operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.operations
}

func describe(t *mvcc.TxnRequest) (s string) {
	for _, c := range t.Compare {
		s += fmt.Sprintf("if %s.%d =%d %d %q ", c.Key, c.Target, c.Result, c.Number, c.Value)
	}
	for i, ops := range [][]mvcc.Op{t.Then, t.Else} {
		s += [...]string{"then ", "else "}[i]
		for _, op := range ops {
			switch {
			case op.Put != nil:
				s += fmt.Sprintf("put %s; ", op.Put.Key)
			case op.Delete != nil:
				s += fmt.Sprintf("delete %s-%s; ", op.Delete.Key, op.Delete.End)
			case op.Range != nil:
				s += fmt.Sprintf("range %s-%s; ", op.Range.Key, op.Range.End)
			}
		}
	}
	return s
}
