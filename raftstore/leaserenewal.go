package raftstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"kontiki/mvcc"
)

// What the lessor is asked for.

// renew gives a lease its whole TTL again.
func (l *lessor) renew(ctx context.Context, id int64) (LeaseStatus, error) {
	term, err := l.lead(ctx)
	if err != nil {
		return LeaseStatus{}, err
	}
	notes, err := l.touch(ctx, term, id)
	if errors.Is(err, mvcc.ErrLeaseNotFound) { // who has led until somebody else made the lease would say so, too
		err = cmp.Or(l.stillLeads(ctx, term), err)
	}
	if err != nil {
		return LeaseStatus{}, err
	}
	if notes > 0 { // the next leader must not find less than the whole TTL
		if err := l.propose(ctx, 0, mvcc.Command{Checkpoint: []mvcc.LeaseCheckpoint{{ID: id}}}); err != nil {
			return LeaseStatus{}, err
		}
		l.forgetNotes(id, notes)
	}
	if err := l.stillLeads(ctx, term); err != nil {
		return LeaseStatus{}, err
	}
	return l.status(term, id)
}

// touch moves a lease's deadline. It returns how many checkpoints the log has, or will have, from before.
func (l *lessor) touch(ctx context.Context, term uint64, id int64) (notes int, err error) {
	if err := l.order.take(ctx); err != nil {
		return 0, err
	}
	defer l.order.pass()
	now := l.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term != term {
		return 0, ErrNotLeader
	}
	t := l.timers[id]
	if t == nil || t.expired(now) {
		return 0, mvcc.ErrLeaseNotFound
	}
	t.renew(now)
	return t.notes, nil
}

// forgetNotes notes that the store knows of no checkpoint any more, unless another was made meanwhile.
func (l *lessor) forgetNotes(id int64, notes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.timers[id]; t != nil && t.notes == notes {
		t.notes = 0
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
	return l.status(term, id)
}

// status is what the timers of a term say.
func (l *lessor) status(term uint64, id int64) (LeaseStatus, error) {
	now := l.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term != term {
		return LeaseStatus{}, ErrNotLeader
	}
	t := l.timers[id]
	if t == nil {
		return LeaseStatus{}, mvcc.ErrLeaseNotFound
	}
	return LeaseStatus{ID: id, TTLSeconds: int64(t.ttl / time.Second), Remaining: t.remaining(now)}, nil
}
