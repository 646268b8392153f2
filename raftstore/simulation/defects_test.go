package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// This file shows that the checks fail when they should. TestChecksCatch plants defects in what a seed has
// recorded, one at a time; TestSimulationCatches in what the members run on.

// defects are what can be wrong with a record. Each function plants one and returns how to take it back; the text
// is in what the checks have to say then.
var defects = []struct {
	name  string
	says  string
	plant func(s *simulation) (undo func())
}{
	{"a write at another revision than was said", "was acknowledged with another", func(s *simulation) func() {
		return change(&s.write().txnRes.Revision, 1)
	}},
	{"a write that was refused happens", "was refused, and done", func(s *simulation) func() {
		return change(&s.write().outcome, refused)
	}},
	{"a write that was acknowledged is lost", "is not in history", func(s *simulation) func() {
		lost := *s.write()
		lost.id = "lost"
		lost.txn = &mvcc.TxnRequest{Then: []mvcc.Op{put([]byte("r/0"), []byte("lost"), false)}}
		lost.txnRes = mvcc.TxnResult{Revision: lost.txnRes.Revision, Succeeded: true, Ops: []mvcc.OpResult{{Put: &mvcc.PutResult{}}}}
		return change(&s.record.operations, append(slices.Clone(s.record.operations), &lost))
	}},
	{"a write happens twice", "was done before", func(s *simulation) func() {
		first := s.history.revisions[s.write().txnRes.Revision]
		return replace(s.history.revisions, s.final, first)
	}},
	{"a write writes something else", "does something else", func(s *simulation) func() {
		rev := s.write().txnRes.Revision
		events := slices.Clone(s.history.revisions[rev])
		events[0].KV.Version += 5
		return replace(s.history.revisions, rev, events)
	}},
	{"a revision that nobody made", "nobody did this", func(s *simulation) func() {
		rev := s.write().txnRes.Revision
		events := slices.Clone(s.history.revisions[rev])
		for i := range events {
			events[i].KV.Value = []byte("?")
		}
		return replace(s.history.revisions, rev, events)
	}},
	{"a revision is missing", "was not told", func(s *simulation) func() {
		rev := s.final / 2
		events := s.history.revisions[rev]
		delete(s.history.revisions, rev)
		return func() { s.history.revisions[rev] = events }
	}},
	{"a read gives another value", "wrong answer", func(s *simulation) func() {
		o := s.read()
		return change(&o.readRes.KVs, []mvcc.KeyValue{{Key: o.read.Key, Value: []byte("?")}})
	}},
	{"a stale read, by revisions", "is not after", staleRead},
	{"a stale read, by values", "porcupine", staleRead},
	{"a watch leaves out an event", "batch from", func(s *simulation) func() {
		b := s.batch()
		return change(&b.Events, b.Events[1:])
	}},
	{"a watch delivers an event twice", "unexpected", func(s *simulation) func() {
		b := s.batch()
		return change(&b.Events, append(slices.Clone(b.Events), b.Events[len(b.Events)-1]))
	}},
	{"a watch says progress that it has not made", "missing", func(s *simulation) func() {
		b := s.batch()
		events := b.Events
		b.Events = nil
		return func() { b.Events = events }
	}},
	{"a watch gives another previous version", "version before", func(s *simulation) func() {
		for _, w := range s.watches {
			for _, x := range w.done {
				for _, b := range x.batches {
					for i := range b.Events {
						if prev := b.Events[i].PrevKV; prev != nil {
							other := *prev
							other.Version++
							return change(&b.Events[i].PrevKV, &other)
						}
					}
				}
			}
		}
		return nil
	}},
	{"a watch ends without a reason", "disk on fire", func(s *simulation) func() {
		return change(&s.batch().Err, errors.New("disk on fire"))
	}},
	{"a watch is said to be compacted that is not", "said to be compacted", func(s *simulation) func() {
		b := s.batch()
		old := *b
		*b = mvcc.WatchBatch{Err: mvcc.ErrCompacted, CompactRevision: s.history.compacted + 1000}
		return func() { *b = old }
	}},
	{"a lease ends early", "too early", func(s *simulation) func() {
		o := s.expired()
		return replace(s.history.toldAt, s.replayed.ended[o.lease], o.returned.Add(time.Millisecond))
	}},
	{"a lease that lives cannot be renewed", "too early", func(s *simulation) func() {
		o := s.expired()
		early := *o
		early.kind, early.outcome, early.notFound = "renew", refused, true
		return change(&s.leases.asked, append(slices.Clone(s.leases.asked), &early))
	}},
	{"a lease has too little left", "too little", func(s *simulation) func() {
		return change(&s.lease("renew").status.Remaining, 0)
	}},
	{"a lease has more left than its TTL", "impossible", func(s *simulation) func() {
		return change(&s.lease("renew").status.Remaining, time.Hour)
	}},
	{"a lease has another TTL", "impossible", func(s *simulation) func() {
		return change(&s.lease("renew").status.TTLSeconds, 99)
	}},
	{"a lease's end leaves a key", "the end of lease", func(s *simulation) func() {
		for _, rev := range s.replayed.ended {
			if events := s.history.revisions[rev]; len(events) > 1 {
				return replace(s.history.revisions, rev, events[1:])
			}
		}
		return nil
	}},
	{"a lease comes back", "came and went", func(s *simulation) func() {
		back := *s.lease("revoke")
		back.kind, back.call, back.ret = "ttl", back.ret+1_000_000, back.ret+1_000_001
		return change(&s.leases.asked, append(slices.Clone(s.leases.asked), &back))
	}},
	{"a key is attached to a lease that has ended", "which ended at", func(s *simulation) func() {
		for _, o := range s.record.all() {
			for i := range s.leases.asked {
				lease := s.leases.asked[i].lease
				if end := s.replayed.ended[lease]; end > 0 && s.replayed.found[o] > end && !attaches(o.txn, lease) && len(o.txn.Then) > 0 && o.txn.Then[0].Put != nil {
					return change(&o.txn.Then[0].Put.Lease, lease)
				}
			}
		}
		return nil
	}},
}

// staleRead makes an early read one of the last operations.
func staleRead(s *simulation) func() {
	o := s.read()
	call, ret := o.call, o.ret
	now := s.record.clock.Add(2)
	o.call, o.ret = now-1, now
	return func() { o.call, o.ret = call, ret }
}

// change sets a value, and returns how to set it back.
func change[T any](v *T, to T) func() {
	old := *v
	*v = to
	return func() { *v = old }
}

func replace[K comparable, V any](m map[K]V, k K, v V) func() {
	old := m[k]
	m[k] = v
	return func() { m[k] = old }
}

// write is an acknowledged write of a register, one of the first, whose outcome is in history.
func (s *simulation) write() *operation {
	for _, o := range s.record.all() {
		if s.replayed.found[o] > 5 && o.outcome == acknowledged && o.txn.Then[0].Put != nil {
			return o
		}
	}
	panic("no write")
}

// read is a linearizable read of one register that had a value then, one of the first.
func (s *simulation) read() *operation {
	for _, o := range s.record.all() {
		if o.read != nil && !o.local && o.outcome == acknowledged && len(o.read.End) == 0 && len(o.readRes.KVs) > 0 {
			return o
		}
	}
	panic("no read")
}

// batch is what some watch delivered, with events.
func (s *simulation) batch() *mvcc.WatchBatch {
	for _, w := range s.watches {
		for _, x := range w.done {
			for i := range x.batches {
				if len(x.batches[i].Events) > 0 && x.req.StartRevision > 0 {
					return &x.batches[i]
				}
			}
		}
	}
	panic("no batch")
}

// lease is an acknowledged request about a lease.
func (s *simulation) lease(kind string) *leaseOp {
	for _, o := range s.leases.all() {
		if o.kind == kind && o.outcome == acknowledged {
			return o
		}
	}
	panic("no " + kind)
}

// expired is the grant of a lease that ended by itself.
func (s *simulation) expired() *leaseOp {
	revoked := map[int64]bool{}
	for _, o := range s.leases.all() {
		revoked[o.lease] = revoked[o.lease] || o.kind == "revoke"
	}
	for _, o := range s.leases.all() {
		if o.kind == "grant" && o.outcome == acknowledged && s.replayed.ended[o.lease] > 0 && !revoked[o.lease] {
			return o
		}
	}
	panic("no lease expired")
}

func TestChecksCatch(t *testing.T) {
	s, _ := lived(t, 3, func(*simulation) {})
	s.check()
	require.Empty(t, s.lessons.all())
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			undo := d.plant(s)
			require.NotNil(t, undo, "nowhere to plant it: choose another seed")
			before := s.replayed
			s.lessons = &report{}
			s.check()
			undo()
			s.replayed = before
			require.Contains(t, strings.Join(s.lessons.all(), "\n"), d.says)
		})
	}
	s.lessons = &report{}
	s.check()
	require.Empty(t, s.lessons.all(), "everything was taken back")
}

// TestSimulationCatches plants defects in what the members run on: they are caught within a few seeds.
func TestSimulationCatches(t *testing.T) {
	for name, c := range map[string]struct {
		says  string
		plant func(*simulation)
	}{
		"clocks that go too fast": {"too early", func(s *simulation) {
			for _, c := range s.cluster.clocks {
				c.rate = 4
			}
		}},
		"clocks that hardly go": {"leases are still there", func(s *simulation) {
			for _, c := range s.cluster.clocks {
				c.rate = 0.05
			}
		}},
		"history that ages too fast": {"was told only", func(s *simulation) {
			s.cluster.tuning.Retention = keptHistory
			for _, c := range s.cluster.clocks {
				c.rate = 4
			}
		}},
		"history that hardly ages": {"is not compacted", func(s *simulation) {
			s.cluster.tuning.Retention = keptHistory
			for _, c := range s.cluster.clocks {
				c.rate = 0.05
			}
		}},
		"disks that lie about what is durable": {"", func(s *simulation) { s.cluster.lying = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			for seed := uint64(1); seed <= 30; seed++ {
				s, _ := lived(t, seed, c.plant)
				s.check()
				said = append(said, s.lessons.all()...)
				if said != nil && strings.Contains(fmt.Sprint(said), c.says) {
					return
				}
			}
			t.Fatalf("not caught; what was said is: %v", said)
		})
	}
}
