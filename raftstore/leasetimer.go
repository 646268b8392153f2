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
//	granted or renewed here      after half the TTL (clients renew after a third of it),
//	                             then 1 s later, 2 s later, 4 s, …
//	inherited from a leader      after 1 s, 2 s later, 4 s, …
//
// With any leader that lasts longer than a second or so, time goes on: it is written down at the
// latest when it is twice what was written down before in its term.
type leaseTimer struct {
	ttl          time.Duration
	deadline     time.Time
	checkpointAt time.Time
	pause        time.Duration // from that checkpoint to the next
	noted        bool          // a checkpoint below the TTL is in the log, or may be
}

const firstPause = time.Second

// freshTimer is of a lease that was granted just now.
func freshTimer(l mvcc.Lease, now time.Time) *leaseTimer {
	t := &leaseTimer{ttl: time.Duration(l.TTLSeconds) * time.Second}
	t.renew(now)
	return t
}

// inheritedTimer is of a lease that a leader finds when it begins.
func inheritedTimer(l mvcc.Lease, now time.Time) *leaseTimer {
	return &leaseTimer{
		ttl:          time.Duration(l.TTLSeconds) * time.Second,
		deadline:     now.Add(l.Remaining()),
		checkpointAt: now.Add(firstPause),
		pause:        2 * firstPause,
		noted:        l.RemainingMillis > 0,
	}
}

func (t *leaseTimer) renew(now time.Time) {
	t.deadline = now.Add(t.ttl)
	t.checkpointAt = now.Add(max(firstPause, t.ttl/2))
	t.pause = firstPause
}

func (t *leaseTimer) expired(now time.Time) bool { return !now.Before(t.deadline) }

// remaining is never negative, however long the revocation takes (KV-15).
func (t *leaseTimer) remaining(now time.Time) time.Duration { return max(0, t.deadline.Sub(now)) }

func (t *leaseTimer) checkpointDue(now time.Time) bool {
	return !t.expired(now) && !now.Before(t.checkpointAt)
}

// checkpoint notes that what is left is being written down, and returns it, in milliseconds.
func (t *leaseTimer) checkpoint(now time.Time) int64 {
	t.noted = true
	t.checkpointAt = now.Add(t.pause)
	t.pause *= 2
	return max(1, t.remaining(now).Milliseconds()) // 0 would mean the whole TTL
}
