package raftstore

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// lessor measures the time of leases, on the leader. The replicated state has no clock: it knows how
// long a lease was granted for and, now and then, how much was left of that (leasetimer.go says when).
//
//   - A new leader gives every lease what was left when it was last written down, or its whole TTL, from
//     the moment on at which it leads: no owner who could renew in time loses a lease by an election.
//   - Renewing a lease moves its deadline here, in memory. It is acknowledged after the leader has made
//     sure that it still led when the deadline moved (as for a linearizable read): the next leader
//     begins to count later than that, and from no less.
//   - A lease whose deadline has passed cannot be renewed any more. The leader proposes to revoke it, at
//     every tick until it is gone (KV-15).
//   - What a leader proposes because time has passed counts in its own term only (encodeProposalIn).
type lessor struct {
	store     *mvcc.Store
	raft      *raft.Raft
	proposer  *proposer
	readIndex *readIndex
	clock     *steadyClock
	timeout   time.Duration // of one proposal
	log       *slog.Logger
	stop      chan struct{}
	group     sync.WaitGroup

	// The order of locks is promoting, order, mu.

	promoting turn // held while a new term begins
	// order keeps a checkpoint that was computed before a renewal from coming into the log after what the
	// renewal writes down: it is held while checkpoints are computed and put into the proposer's queue, and
	// while a renewal moves the deadline.
	order turn

	mu     sync.Mutex // guards everything below; nobody waits for anything while holding it
	term   uint64     // the term that the timers are for; 0 while this member does not lead
	timers map[int64]*leaseTimer
}

const (
	// lessorTick is how often deadlines are looked at: a lease lives at most so much longer than its TTL
	// (and than the time that passes without a leader).
	lessorTick = 500 * time.Millisecond
	// maxRevokes bounds the proposals under way to revoke leases.
	maxRevokes = 64
	// maxCheckpoints bounds the leases in one proposal.
	maxCheckpoints = 10_000
)

// lessorOrigin says in the log who proposed.
var lessorOrigin = Origin{User: "system:store", UserAgent: "kontiki lessor"}

func newLessor(store *mvcc.Store, c Config) *lessor {
	return &lessor{
		store: store, clock: newSteadyClock(c.Clock), timeout: c.RequestTimeout, log: c.Log, stop: make(chan struct{}),
		promoting: newTurn(), order: newTurn(),
	}
}

func (l *lessor) start(r *raft.Raft, p *proposer, x *readIndex) {
	l.raft, l.proposer, l.readIndex = r, p, x
	l.group.Go(l.run)
	l.group.Go(func() { l.clock.run(l.stop) })
}

func (l *lessor) close() {
	close(l.stop)
	l.group.Wait()
}

func (l *lessor) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.group.Go(func() {
		<-l.stop
		cancel()
	})
	tick := time.NewTicker(lessorTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.stop:
			return
		}
		if term, err := l.lead(ctx); err == nil {
			l.expire(ctx, term)
			l.checkpoint(ctx, term)
		}
	}
}

// lead returns the term in which this member leads, with the timers of all leases set for it, or
// ErrNotLeader. It begins as a linearizable read does, so that what earlier leaders wrote down is applied here.
func (l *lessor) lead(ctx context.Context) (uint64, error) {
	term := l.raft.CurrentTerm()
	if l.raft.State() != raft.Leader {
		l.resign()
		return 0, ErrNotLeader
	}
	if err := l.promoting.take(ctx); err != nil {
		return 0, err
	}
	defer l.promoting.pass()
	if l.leads(term) {
		return term, nil
	}
	if err := l.stillLeads(ctx, term); err != nil {
		return 0, err
	}
	l.begin(term)
	return term, nil
}

func (l *lessor) leads(term uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term == term
}

func (l *lessor) begin(term uint64) {
	now := l.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.timers = term, map[int64]*leaseTimer{}
	for _, lease := range l.store.Leases() {
		l.timers[lease.ID] = inheritedTimer(lease, now)
	}
}

func (l *lessor) resign() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.timers = 0, nil
}

// applied tells the lessor of a command that was just applied, here; the state machine does so.
func (l *lessor) applied(c mvcc.Command) {
	if l == nil || c.Grant == nil && c.Revoke == 0 {
		return
	}
	now := l.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timers == nil:
	case c.Grant != nil:
		l.timers[c.Grant.ID] = freshTimer(mvcc.Lease{ID: c.Grant.ID, TTLSeconds: c.Grant.TTLSeconds}, now)
	default:
		delete(l.timers, c.Revoke)
	}
}

// stillLeads makes sure that this member led in term when the call began.
func (l *lessor) stillLeads(ctx context.Context, term uint64) error {
	if _, err := l.readIndex.get(ctx); err != nil {
		return err
	}
	if l.raft.CurrentTerm() != term {
		return ErrNotLeader
	}
	return nil
}
