package simulation

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"kontiki/mvcc"
)

// This file judges leases: by their time, by what a revocation deletes (replay_test.go calls it), and, by
// porcupine, by whether they are there.

// revocation is a revision in which a lease went: it deletes exactly the keys attached to it.
func (x *replayed) revocation(rev int64, told []mvcc.Event, r *report) (after state, is bool) {
	before := x.states[rev-1]
	lease := before[string(told[0].KV.Key)].Lease
	if lease == 0 {
		return nil, false
	}
	var want []mvcc.Event
	after = state{}
	for _, kv := range before.read([]byte{0}, []byte{0}) {
		if kv.Lease != lease {
			after[string(kv.Key)] = kv
			continue
		}
		want = append(want, mvcc.Event{Type: mvcc.DeleteEvent, KV: mvcc.KeyValue{Key: kv.Key, ModRevision: rev}})
	}
	if err := sameEvents(want, told); err != nil {
		r.add("revision %d: the end of lease %x: %v", rev, lease, err)
	}
	if x.ended[lease] != 0 {
		r.add("revision %d: lease %x ended before, at %d", rev, lease, x.ended[lease])
	}
	x.ended[lease] = rev
	return after, true
}

// checkLeases judges all that was asked of leases.
func (x *replayed) checkLeases(h *history, l *leases, operations []*operation, r *report) {
	byLease := map[int64][]*leaseOp{}
	asked := l.all()
	for _, o := range asked {
		if o.kind != "list" {
			byLease[o.lease] = append(byLease[o.lease], o)
		}
	}
	for lease, ops := range byLease {
		c := &leaseCheck{x: x, h: h, l: l, r: r, lease: lease, ops: ops}
		for _, o := range ops {
			c.checkAnswer(o)
		}
		c.checkTime(asked)
		c.checkExistence(asked, operations)
	}
}

// leaseCheck is about one lease.
type leaseCheck struct {
	x     *replayed
	h     *history
	l     *leases
	r     *report
	lease int64
	ops   []*leaseOp
}

// tolerance is by how much a lease may seem to be shorter or longer in a time, measured with clocks that are
// not right: a clock that jumps forward takes at most a second from a lease (raftstore/steadyclock.go).
func (c *leaseCheck) tolerance(from, to time.Time) time.Duration {
	t := time.Duration(float64(to.Sub(from))*2*maxDrift) + 10*time.Millisecond
	for _, jump := range c.l.jumps {
		if !jump.Before(from) && !jump.After(to) {
			t += time.Second
		}
	}
	return t
}

// promised says that a lease was alive at a time, as far as owners were told: not gone before its TTL had passed.
func (c *leaseCheck) promised(at time.Time) *leaseOp {
	for _, o := range c.ops {
		if o.outcome != acknowledged || o.kind != "grant" && o.kind != "renew" {
			continue
		}
		if at.Add(c.tolerance(o.called, at)).Before(o.called.Add(o.ttl)) {
			return o
		}
	}
	return nil
}

// revokedBy says that a client may have revoked the lease by a time.
func (c *leaseCheck) revokedBy(at time.Time) bool {
	for _, o := range c.ops {
		if o.kind == "revoke" && !o.called.After(at) && (o.outcome != refused) {
			return true
		}
	}
	return false
}

// checkTime checks that nothing was said or done about the end of a lease before its time.
func (c *leaseCheck) checkTime(asked []*leaseOp) {
	early := func(at time.Time, format string, args ...any) {
		if o := c.promised(at); o != nil && !c.revokedBy(at) {
			c.r.add(format+"\n  too early, at %s, after\n  %v", append(args, at.Format("05.000"), o)...)
		}
	}
	if rev := c.x.ended[c.lease]; rev != 0 {
		early(c.h.toldAt[rev], "revision %d: lease %x ended", rev, c.lease)
	}
	for _, o := range asked {
		switch {
		case o.lease == c.lease && o.notFound:
			early(o.returned, "%v", o)
		case o.kind == "list" && o.outcome == acknowledged && o.call > c.ops[0].ret && c.ops[0].outcome == acknowledged && !listed(o, c.lease):
			early(o.returned, "%v does not list lease %x", o, c.lease)
		}
	}
}

func listed(o *leaseOp, lease int64) bool {
	for _, l := range o.list {
		if l.ID == lease {
			return true
		}
	}
	return false
}

// checkAnswer checks the answers to one request by themselves.
func (c *leaseCheck) checkAnswer(o *leaseOp) {
	if o.outcome != acknowledged {
		return
	}
	left := o.status.Remaining
	switch o.kind {
	case "renew", "ttl":
		if o.status.TTLSeconds != int64(o.ttl/time.Second) || left < 0 || left > o.ttl {
			c.r.add("impossible: %v", o)
		}
		for _, renewed := range c.ops {
			since := renewed == o && o.kind == "renew" || renewed.ret < o.call
			if !since || renewed.outcome != acknowledged || renewed.kind != "grant" && renewed.kind != "renew" {
				continue
			}
			if least := renewed.ttl - o.returned.Sub(renewed.called) - c.tolerance(renewed.called, o.returned); left < least {
				c.r.add("too little, at least %v is left: %v\n  after\n  %v", least, o, renewed)
			}
		}
	case "revoke":
		rev := c.x.ended[c.lease]
		if rev != 0 && rev != o.revision {
			c.r.add("revoked at revision %d: %v", rev, o)
		}
		if o.revision < int64(len(c.x.states)) {
			for k, kv := range c.x.states[o.revision] {
				if kv.Lease == c.lease {
					c.r.add("left %s: %v", k, o)
				}
			}
		}
	}
}

// The life of a lease, for porcupine.
const (
	notGranted = iota
	alive
	gone
)

type leaseStep string

// Steps. One by which a lease is gone need not say why.
const (
	stepGrant  leaseStep = "grant"
	stepAlive  leaseStep = "alive"
	stepRevoke leaseStep = "revoke"
	stepGone   leaseStep = "gone"
)

var leaseModel = porcupine.Model{
	Init: func() any { return notGranted },
	Step: func(state, input, _ any) (bool, any) {
		switch input.(leaseStep) {
		case stepGrant:
			return state == notGranted, alive
		case stepAlive:
			return state == alive, alive
		case stepRevoke:
			return state == alive, gone
		default:
			return state != notGranted, gone
		}
	},
}

// checkExistence has porcupine find an order in which the lease is granted, alive, and then gone for ever.
func (c *leaseCheck) checkExistence(asked []*leaseOp, operations []*operation) {
	if len(c.ops) == 0 || c.ops[0].kind != "grant" || c.ops[0].outcome != acknowledged {
		return // nothing was done with it
	}
	var steps []porcupine.Operation
	add := func(s leaseStep, call, ret int64) {
		steps = append(steps, porcupine.Operation{Input: s, Call: call, Return: ret})
	}
	for _, o := range asked {
		if s := c.stepOf(o); s != "" {
			add(s, o.call, o.ret)
		}
	}
	for _, o := range operations {
		if at := c.x.found[o]; at != 0 && attaches(o.txn, c.lease) {
			ret := o.ret
			if o.outcome != acknowledged {
				ret = math.MaxInt64
			}
			add(stepAlive, o.call, ret)
			if end := c.x.ended[c.lease]; end != 0 && at > end {
				c.r.add("revision %d: attached to lease %x, which ended at %d: %v", at, c.lease, end, o)
			}
		}
	}
	switch porcupine.CheckOperationsTimeout(leaseModel, steps, 20*time.Second) {
	case porcupine.Illegal:
		c.r.add("porcupine: lease %x came and went (%d operations):", c.lease, len(steps))
		for _, o := range c.ops {
			c.r.add("  %v", o)
		}
	case porcupine.Unknown:
		c.r.add("porcupine: lease %x takes too long (%d operations)", c.lease, len(steps))
	}
}

// stepOf is what an operation says about whether the lease is there. That it cannot be renewed says nothing: its
// time may be up, and it may still be there.
func (c *leaseCheck) stepOf(o *leaseOp) leaseStep {
	mine := o.lease == c.lease
	switch {
	case mine && o.kind == "grant" && o.outcome == acknowledged:
		return stepGrant
	case mine && o.kind == "revoke" && o.outcome == acknowledged:
		return stepRevoke
	case mine && o.notFound && o.kind != "renew":
		return stepGone
	case mine && o.outcome == acknowledged && (o.kind == "renew" || o.kind == "ttl"):
		return stepAlive
	case o.kind == "list" && o.outcome == acknowledged && listed(o, c.lease):
		return stepAlive
	case o.kind == "list" && o.outcome == acknowledged && o.call > c.ops[0].ret:
		return stepGone
	}
	return ""
}

func attaches(t *mvcc.TxnRequest, lease int64) bool {
	if t == nil {
		return false
	}
	for _, op := range t.Then {
		if op.Put != nil && op.Put.Lease == lease {
			return true
		}
	}
	return false
}
