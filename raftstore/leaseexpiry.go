package raftstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"kontiki/mvcc"
)

// What the lessor proposes because time has passed.

// expire proposes to revoke the leases whose time is up.
func (l *lessor) expire(ctx context.Context, term uint64) {
	var group sync.WaitGroup
	slots := make(chan struct{}, maxRevokes)
	for _, id := range l.expired(l.clock.now()) {
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

// checkpoint writes down how much time leases have left, of those for which it is due. If that fails, their
// turn comes again.
func (l *lessor) checkpoint(ctx context.Context, term uint64) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	proposals, err := l.sendCheckpoints(ctx, term)
	for _, p := range proposals {
		_, failed := l.proposer.await(ctx, p)
		err = errors.Join(err, failed)
	}
	if err != nil {
		l.log.Warn("what leases have left could not be written down, will try again", "err", err)
	}
}

// sendCheckpoints puts checkpoints into the proposer's queue, which is in the order of the log.
func (l *lessor) sendCheckpoints(ctx context.Context, term uint64) (proposals []*proposal, err error) {
	now := l.clock.now()
	if err := l.order.take(ctx); err != nil {
		return nil, err
	}
	defer l.order.pass()
	for due := l.due(now); len(due) > 0; {
		n := min(len(due), maxCheckpoints)
		data, err := encodeProposalIn(term, lessorOrigin, mvcc.Command{Checkpoint: due[:n]})
		if err != nil {
			return proposals, err
		}
		p, err := l.proposer.enqueue(ctx, data)
		if err != nil {
			return proposals, err
		}
		proposals, due = append(proposals, p), due[n:]
	}
	return proposals, nil
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
