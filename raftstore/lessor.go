package raftstore

import (
	"context"
	"errors"
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
	timeout   time.Duration // of one proposal
	log       *slog.Logger
	stop      chan struct{}
	group     sync.WaitGroup

	// The order of locks is promoting, order, mu.

	promoting sync.Mutex // held while a new term begins
	// order keeps a checkpoint that was computed before a renewal from coming into the log after it: it
	// is held for writing while checkpoints are computed and proposed, for reading by renewals.
	order sync.RWMutex

	mu     sync.Mutex // guards everything below
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
	return &lessor{store: store, timeout: c.RequestTimeout, log: c.Log, stop: make(chan struct{})}
}

func (l *lessor) start(r *raft.Raft, p *proposer, x *readIndex) {
	l.raft, l.proposer, l.readIndex = r, p, x
	l.group.Go(l.run)
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
	l.promoting.Lock()
	defer l.promoting.Unlock()
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.timers = term, map[int64]*leaseTimer{}
	now := time.Now()
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
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timers == nil:
	case c.Grant != nil:
		l.timers[c.Grant.ID] = freshTimer(mvcc.Lease{ID: c.Grant.ID, TTLSeconds: c.Grant.TTLSeconds}, time.Now())
	default:
		delete(l.timers, c.Revoke)
	}
}

// expire proposes to revoke the leases whose time is up.
func (l *lessor) expire(ctx context.Context, term uint64) {
	var group sync.WaitGroup
	slots := make(chan struct{}, maxRevokes)
	for _, id := range l.expired(time.Now()) {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			err := l.propose(ctx, term, mvcc.Command{Revoke: id})
			if err != nil && !errors.Is(err, mvcc.ErrLeaseNotFound) { // somebody was faster
				l.log.Warn("an expired lease could not be revoked, will try again", "lease", id, "err", err)
			}
		})
	}
	group.Wait()
}

func (l *lessor) expired(now time.Time) (ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.timers {
		if t.expired(now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// checkpoint writes down how much time leases have left, of those for which it is due.
func (l *lessor) checkpoint(ctx context.Context, term uint64) {
	l.order.Lock()
	defer l.order.Unlock()
	due := l.due(time.Now())
	for len(due) > 0 {
		n := min(len(due), maxCheckpoints)
		if err := l.propose(ctx, term, mvcc.Command{Checkpoint: due[:n]}); err != nil {
			l.log.Warn("what leases have left could not be written down, will try again", "leases", len(due), "err", err)
			return // their turn comes again
		}
		due = due[n:]
	}
}

func (l *lessor) due(now time.Time) (list []mvcc.LeaseCheckpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.timers {
		if t.checkpointDue(now) {
			list = append(list, mvcc.LeaseCheckpoint{ID: id, RemainingMillis: t.checkpoint(now)})
		}
	}
	return list
}

// propose proposes on this member or not at all.
func (l *lessor) propose(ctx context.Context, term uint64, c mvcc.Command) error {
	data, err := encodeProposalIn(term, lessorOrigin, c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	_, err = l.proposer.propose(ctx, data)
	return err
}

// renew gives a lease its whole TTL again.
func (l *lessor) renew(ctx context.Context, id int64) (LeaseStatus, error) {
	term, err := l.lead(ctx)
	if err != nil {
		return LeaseStatus{}, err
	}
	l.order.RLock()
	defer l.order.RUnlock()
	noted, err := l.touch(id)
	if err != nil {
		return LeaseStatus{}, err
	}
	if noted { // the next leader must not find less than the whole TTL
		if err := l.propose(ctx, 0, mvcc.Command{Checkpoint: []mvcc.LeaseCheckpoint{{ID: id}}}); err != nil {
			return LeaseStatus{}, err
		}
		l.forgetNote(id)
	}
	if err := l.stillLeads(ctx, term); err != nil {
		return LeaseStatus{}, err
	}
	return l.status(id)
}

// touch moves a lease's deadline; noted says that the store may know of less time than the TTL.
func (l *lessor) touch(id int64) (noted bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	t := l.timers[id]
	if t == nil || t.expired(now) {
		return false, mvcc.ErrLeaseNotFound
	}
	t.renew(now)
	return t.noted, nil
}

func (l *lessor) forgetNote(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.timers[id]; t != nil {
		t.noted = false
	}
}

// timeToLive says how much time a lease has left.
func (l *lessor) timeToLive(ctx context.Context, id int64) (LeaseStatus, error) {
	term, err := l.lead(ctx)
	if err != nil {
		return LeaseStatus{}, err
	}
	if err := l.stillLeads(ctx, term); err != nil {
		return LeaseStatus{}, err
	}
	return l.status(id)
}

func (l *lessor) status(id int64) (LeaseStatus, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.timers[id]
	if t == nil {
		return LeaseStatus{}, mvcc.ErrLeaseNotFound
	}
	return LeaseStatus{ID: id, TTLSeconds: int64(t.ttl / time.Second), Remaining: t.remaining(time.Now())}, nil
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
