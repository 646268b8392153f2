package mvcc

import (
	"errors"
	"sync"
	"time"
)

// background is the store's own goroutines: one commits, one sweeps after compactions, one gives
// progress to watchers. Open starts them and Close waits for them.
type background struct {
	stop   chan struct{}
	once   sync.Once
	group  sync.WaitGroup
	dirty  chan struct{} // room for one: there is something to commit
	urgent chan struct{} // room for one: and so much that it should not wait for the interval
	sweep  chan struct{} // room for one: there is a compaction whose physical part is not done
}

func (s *Store) startBackground() {
	b := &s.background
	b.stop = make(chan struct{})
	b.dirty, b.urgent, b.sweep = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	b.group.Go(s.commitLoop)
	b.group.Go(s.sweepLoop)
	b.group.Go(s.progressLoop)
	if s.meta.swept < s.meta.compacted {
		kick(b.sweep) // a crash came in between
	}
}

func (s *Store) stopBackground() {
	s.background.once.Do(func() { close(s.background.stop) })
	s.background.group.Wait()
}

// kick asks a goroutine to do its work; asking twice before it starts is asking once.
func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits for d, and returns false if the store is closed before.
func (b *background) pause(d time.Duration) bool { return b.pauseUnless(d, nil) }

// pauseUnless is pause, cut short by early.
func (b *background) pauseUnless(d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-early:
		return true
	case <-timer.C:
		return true
	case <-b.stop:
		return false
	}
}

const (
	retryMin = 100 * time.Millisecond
	retryMax = 10 * time.Second
)

// retry runs f until it succeeds, with growing pauses, for as long as the store is open: a full disk
// must not end commits or compaction for good (KV-18).
func (s *Store) retry(what string, f func() error) {
	for delay := retryMin; ; delay = min(2*delay, retryMax) {
		err := f()
		if err == nil || errors.Is(err, ErrClosed) {
			return
		}
		s.opts.Log.Error("store maintenance failed, will try again", "work", what, "err", err, "after", delay)
		if !s.background.pause(delay) {
			return
		}
	}
}

// progressLoop lets watchers that ask for progress know that nothing happened.
func (s *Store) progressLoop() {
	for s.background.pause(s.opts.ProgressInterval) {
		s.RequestProgress()
	}
}
