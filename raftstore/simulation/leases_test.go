package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// leases is what was asked of leases, and all that bears on their time.
type leases struct {
	mu    sync.Mutex // guards everything below
	asked []*leaseOp
	jumps []time.Time // of any member's clock
}

// leaseOp is one request about a lease and what came of it.
type leaseOp struct {
	kind    string // grant, renew, ttl, revoke or list
	lease   int64
	ttl     time.Duration // of the lease
	process string

	call, ret        int64     // moments of record.clock
	called, returned time.Time // the same in virtual time
	outcome          outcome
	notFound         bool // the answer was: there is no such lease
	err              error
	status           raftstore.LeaseStatus
	revision         int64 // of a revoke
	list             []mvcc.Lease
}

func (o *leaseOp) String() string {
	return fmt.Sprintf("%s of lease %x (TTL %v) on %s [%d,%d] %s to %s: %v, %v left, revision %d, %v", o.kind, o.lease, o.ttl, o.process,
		o.call, o.ret, o.called.Format("05.000"), o.returned.Format("05.000"), o.outcome, o.status.Remaining, o.revision, o.err)
}

func (l *leases) noteJump() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jumps = append(l.jumps, time.Now())
}

func (l *leases) all() []*leaseOp {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// ask asks a process about a lease, and remembers it.
func (s *simulation) ask(ctx context.Context, p *process, o *leaseOp) *leaseOp {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.alive, cancel)()
	o.process, o.call, o.called = p.String(), s.record.clock.Add(1), time.Now()
	p.gate.pass()
	switch o.kind {
	case "grant":
		_, o.err = p.member.GrantLease(ctx, o.lease, int64(o.ttl/time.Second))
	case "renew":
		o.status, o.err = p.member.RenewLease(ctx, o.lease)
	case "ttl":
		o.status, o.err = p.member.LeaseTimeToLive(ctx, o.lease)
	case "revoke":
		o.revision, o.err = p.member.RevokeLease(ctx, o.lease)
	case "list":
		o.list, o.err = p.member.Leases(ctx)
	}
	p.gate.pass()
	o.ret, o.returned = s.record.clock.Add(1), time.Now()
	o.outcome, o.notFound = judge(o.err), errors.Is(o.err, mvcc.ErrLeaseNotFound)
	if !p.isAlive() {
		o.outcome, o.notFound = unknown, false
	}
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	s.leases.asked = append(s.leases.asked, o)
	return o
}

// owner has one lease after the other: it attaches keys, renews it for a while, and then revokes it or
// lets it expire. The keys are the same for all owners, so keys move from lease to lease.
type owner struct {
	client
	number int64
	leases int64
}

const (
	leasedKeys  = 4 // l/0, l/1, …
	maxLeaseTTL = 4 * time.Second
)

func (o *owner) run(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(o.dice.upTo(500 * time.Millisecond))
		o.leases++
		lease := &leaseOp{lease: o.number<<32 | o.leases, ttl: pick(o.dice, 2*time.Second, 3*time.Second, maxLeaseTTL)}
		if granted := o.ask(ctx, lease, "grant"); granted != nil && granted.outcome == acknowledged {
			o.own(ctx, lease)
		}
	}
}

// own uses a lease until it is gone, or until it does not care any more.
func (o *owner) own(ctx context.Context, lease *leaseOp) {
	for range o.dice.below(12) {
		time.Sleep(o.dice.upTo(lease.ttl / 2))
		if ctx.Err() != nil {
			return
		}
		switch o.dice.weighted(4, 6, 2, 1) {
		case 0:
			o.attach(ctx, lease.lease)
		case 1:
			if renewed := o.ask(ctx, lease, "renew"); renewed != nil && renewed.notFound {
				return
			}
		case 2:
			o.ask(ctx, lease, "ttl")
		case 3:
			o.ask(ctx, lease, "list")
		}
	}
	if o.dice.happens(0.4) {
		o.ask(ctx, lease, "revoke")
	}
}

// ask asks any member; nil if none is up.
func (o *owner) ask(ctx context.Context, lease *leaseOp, kind string) *leaseOp {
	p := o.s.cluster.any(o.dice)
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pick(o.dice, 300*time.Millisecond, time.Second, 3*time.Second))
	defer cancel()
	return o.s.ask(ctx, p, &leaseOp{kind: kind, lease: lease.lease, ttl: lease.ttl})
}

func (o *owner) attach(ctx context.Context, lease int64) {
	p := o.s.cluster.any(o.dice)
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	o.txn(ctx, p, func(id []byte) *mvcc.TxnRequest {
		t := &mvcc.TxnRequest{}
		for i := range leasedKeys {
			if o.dice.happens(0.4) {
				op := put(fmt.Appendf(nil, "l/%d", i), id, false)
				if op.Put.Lease = lease; o.dice.happens(0.2) {
					op.Put.Lease = 0 // detach
				}
				t.Then = append(t.Then, op)
			}
		}
		if len(t.Then) == 0 {
			t.Then = append(t.Then, put([]byte("j/"+o.name), id, false))
		}
		return t
	})
}

// expire waits, when nobody renews any more, until all leases are gone. Elections do not keep them alive: in
// some seeds the leader changes every other second meanwhile (KV-14).
func (s *simulation) expire() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	restless := s.dice.happens(0.3)
	bound := maxLeaseTTL + maxLeaseTTL/10 + 2*time.Second // drift; the tick and the revocation
	if restless {
		bound = 4 * maxLeaseTTL
	}
	begin, moved := time.Now(), time.Now()
	o := owner{client: client{s: s, dice: newDice(s.seed, "expiry")}}
	for {
		listed := o.ask(ctx, &leaseOp{}, "list")
		if listed != nil && listed.outcome == acknowledged && len(listed.list) == 0 {
			return
		}
		if time.Since(begin) > bound+s.newestTerm(begin) {
			s.lessons.add("leases are still there %v after all owners have stopped (restless: %v): %v", time.Since(begin), restless, listed)
			return
		}
		if restless && time.Since(moved) > 2*time.Second {
			moved = time.Now()
			s.moveLeader(fault{who: []string{pick(s.dice, s.cluster.names...)}})
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// newestTerm is how long after a moment the newest leader began: a lease may have all of its time again from then.
func (s *simulation) newestTerm(since time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.elected.Sub(since))
}
