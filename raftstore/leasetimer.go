package raftstore

import (
	"time"

	"kontiki/mvcc"
)

// leaseTimer is the time of one lease, as the leader measures it. It is guarded by lessor.mu.
//
// How much time a lease has left is written down (a checkpoint, in the log) so that elections do not
// keep it alive for ever (etcd issue 9395): a leader that knows of no checkpoint gives the whole TTL.
// Checkpoints of leases that are renewed would cost a write for each renewal, so it is those that
// are not renewed in time that are written down, and these rarely:
//
//	granted or renewed here      after half the TTL (clients renew after a third of it), and then
//	inherited from a leader      soon, and then
//	                             every second; later whenever a quarter more has passed since the first
//
// So what an election gives back to a lease is a second, or a fifth of the time that the leader before has
// led, and the time without a leader; and a lease of a day costs some 50 checkpoints, not 40,000.
type leaseTimer struct {
	ttl      time.Duration
	deadline time.Time
	first    time.Time // when the first checkpoint was, or is, due
	next     time.Time // when the next one is
	over     bool      // was found expired: nothing changes that any more
	notes    int       // checkpoints below the TTL that are in the log, or may be, since the last that said: all of it
}

const minCheckpointInterval = time.Second

// freshTimer is of a lease that was granted just now.
func freshTimer(l mvcc.Lease, now time.Time) *leaseTimer {
	t := &leaseTimer{ttl: time.Duration(l.TTLSeconds) * time.Second}
	t.renew(now)
	return t
}

// inheritedTimer is of a lease that a leader finds when it begins.
func inheritedTimer(l mvcc.Lease, now time.Time) *leaseTimer {
	first := now.Add(minCheckpointInterval / 2)
	t := &leaseTimer{ttl: time.Duration(l.TTLSeconds) * time.Second, deadline: now.Add(l.Remaining()), first: first, next: first}
	if l.RemainingMillis > 0 {
		t.notes = 1
	}
	return t
}

func (t *leaseTimer) renew(now time.Time) {
	t.deadline = now.Add(t.ttl)
	t.first = now.Add(max(minCheckpointInterval, t.ttl/2))
	t.next = t.first
}

func (t *leaseTimer) expired(now time.Time) bool {
	t.over = t.over || !now.Before(t.deadline)
	return t.over
}

// remaining is never negative, however long the revocation takes (KV-15).
func (t *leaseTimer) remaining(now time.Time) time.Duration { return max(0, t.deadline.Sub(now)) }

func (t *leaseTimer) checkpointDue(now time.Time) bool {
	return !t.expired(now) && !now.Before(t.next)
}

// checkpoint notes that what is left is being written down, and returns it, in milliseconds.
func (t *leaseTimer) checkpoint(now time.Time) int64 {
	t.notes++
	t.next = now.Add(max(minCheckpointInterval, now.Sub(t.first)/4))
	return max(1, t.remaining(now).Milliseconds()) // 0 would mean the whole TTL
}
