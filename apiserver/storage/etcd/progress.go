package etcd

import (
	"context"
	"sync/atomic"
	"time"
)

// progressInterval is how often a watch that asks for progress hears of a revision in which nothing
// happened for it, as in mvcc. (etcd by itself says so every ten minutes.)
const progressInterval = time.Second

// progress is how far a watch is and how far somebody waits for it to be. When the second is ahead, etcd
// is asked to say that the watch is there. It answers only if the watch is up to date, and as far as the
// member has applied: so it is asked again, after pauses that grow, until it is far enough.
type progress struct {
	told   atomic.Int64 // the revision that the receiver was last told of
	wanted atomic.Int64
	kick   chan struct{} // room for one: told or wanted has changed
}

func newProgress(told int64) *progress {
	p := &progress{kick: make(chan struct{}, 1)}
	p.told.Store(told)
	return p
}

func (p *progress) reached(revision int64) {
	p.told.Store(revision)
	p.wake()
}

// want has the watch told that it is at revision. The caller holds Store.mu.
func (p *progress) want(revision int64) {
	if p.wanted.Load() < revision {
		p.wanted.Store(revision)
		p.wake()
	}
}

func (p *progress) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// request sends requests for progress when they are needed, until ctx ends or send fails.
func (p *progress) request(ctx context.Context, send func() error) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.kick:
		case <-tick.C:
			if send() != nil {
				return
			}
		case <-ctx.Done():
			return
		}
		for pause := retryMin; p.told.Load() < p.wanted.Load(); pause = min(2*pause, retryMax) {
			if send() != nil || !p.wait(ctx, pause) {
				return
			}
		}
	}
}

// wait waits for a kick or until the pause is over, and reports whether ctx is still running.
func (p *progress) wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-p.kick:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// asksForProgress puts a watch on the list of those that requestProgress is for; call what it returns
// when the watch ends.
func (s *Store) asksForProgress(w *watcher) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[w] = struct{}{}
	w.progress.want(s.newest)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	}
}

// requestProgress has the watches that ask for progress told that they are at revision.
func (s *Store) requestProgress(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = max(s.newest, revision)
	for w := range s.watchers {
		w.progress.want(revision)
	}
}
