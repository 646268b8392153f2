// Package watchtest has a model of the revisioned store, for tests: so simple that one can see that
// it is right, and with switches for what real stores do at bad moments. What runs over it in tests
// also runs over the real store.
package watchtest

import (
	"context"
	"errors"
	"sync"

	"kontiki/mvcc"
)

// ErrInterrupted ends the watches that Interrupt interrupts.
var ErrInterrupted = errors.New("watchtest: interrupted")

// Store keeps every event that ever was, in order, and answers everything by going through them.
type Store struct {
	mu        sync.Mutex
	revision  int64
	compacted int64
	history   []mvcc.Event
	changed   chan struct{} // closed and replaced when anything changes
	streams   int           // grows with Interrupt: a watch of an earlier number ends
	held      bool          // watches deliver nothing
}

// New returns an empty store. Like etcd's, it starts at revision 1.
func New() *Store { return &Store{revision: 1, changed: make(chan struct{})} }

// change runs f under the lock and wakes whoever waits.
func (s *Store) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Compact forgets what was before revision.
func (s *Store) Compact(revision int64) {
	s.change(func() { s.compacted = max(s.compacted, revision) })
}

// Interrupt ends every watch, as a lost connection does.
func (s *Store) Interrupt() { s.change(func() { s.streams++ }) }

// Hold keeps watches from delivering anything until Release.
func (s *Store) Hold() { s.change(func() { s.held = true }) }

// Release undoes Hold.
func (s *Store) Release() { s.change(func() { s.held = false }) }

// RollBack takes the store back to an earlier revision, as restoring a backup does, and ends every watch.
func (s *Store) RollBack(revision int64) {
	s.change(func() {
		for i, e := range s.history {
			if e.KV.ModRevision > revision {
				s.history = s.history[:i]
				break
			}
		}
		s.revision = min(s.revision, revision)
		s.streams++
	})
}

// Compacted is the revision of the last Compact.
func (s *Store) Compacted() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compacted
}

// Revision implements watch.Source.
func (s *Store) Revision(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, nil
}

// Range implements watch.Source.
func (s *Store) Range(_ context.Context, req mvcc.RangeRequest) (mvcc.RangeResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rangeLocked(req)
}

// Watch implements watch.Source.
func (s *Store) Watch(ctx context.Context, req mvcc.WatchRequest) <-chan mvcc.WatchBatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := req.StartRevision
	if next == 0 {
		next = s.revision + 1
	}
	out := make(chan mvcc.WatchBatch)
	go s.stream(ctx, req, next, s.streams, out)
	return out
}

func (s *Store) stream(ctx context.Context, req mvcc.WatchRequest, next int64, stream int, out chan<- mvcc.WatchBatch) {
	defer close(out)
	for {
		batch, changed, ready := s.collect(req, next, stream)
		if ready {
			select {
			case out <- batch:
			case <-ctx.Done():
				return
			}
			if batch.Err != nil {
				return
			}
			next = batch.Revision + 1
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// collect returns the next batch of a watch: one revision's events, or progress.
func (s *Store) collect(req mvcc.WatchRequest, next int64, stream int) (batch mvcc.WatchBatch, changed chan struct{}, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case stream != s.streams:
		return mvcc.WatchBatch{Err: ErrInterrupted}, nil, true
	case s.held || next > s.revision:
		return batch, s.changed, false
	case next <= s.compacted:
		return mvcc.WatchBatch{Err: mvcc.ErrCompacted, CompactRevision: s.compacted}, nil, true
	}
	for _, e := range s.history {
		if e.KV.ModRevision < next || !contains(req.Key, req.End, e.KV.Key) {
			continue
		}
		if batch.Revision != 0 && e.KV.ModRevision != batch.Revision {
			break
		}
		batch.Revision = e.KV.ModRevision
		batch.Events = append(batch.Events, s.event(e, req.PrevKV))
	}
	if batch.Revision == 0 {
		batch.Revision = s.revision
		if !req.Progress {
			return batch, s.changed, false
		}
	}
	return batch, nil, true
}

// event leaves out of e what a watch does not show.
func (s *Store) event(e mvcc.Event, withPrev bool) mvcc.Event {
	if withPrev {
		if prev := s.at(string(e.KV.Key), e.KV.ModRevision-1); prev != nil {
			e.PrevKV = prev
		}
	}
	return e
}
