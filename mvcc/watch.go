package mvcc

import (
	"context"
	"sync/atomic"
)

// A watcher pulls. Apply does not send it anything: it only notes, per watcher, the first revision
// that concerns the watcher since it last looked, and wakes it up. The watcher's own goroutine then
// reads history from there, in the tail if it is quick and in the file if it is not, at the pace of
// its receiver. So a slow receiver costs no memory, holds nobody up and misses nothing; all it can
// run into is a compaction, and then it is told so.
//
//	Apply ── missed = 7, wake ──►  watcher's goroutine ── batch ──► deliver ── (out) ──► receiver
//	                                  │ reads [7, newest] from tail or file
type watcher struct {
	req     WatchRequest
	keys    keyRange
	deliver func(WatchBatch) bool // false ends the watch
	out     chan WatchBatch       // that deliver fills, with room for one; nil in a WatchFunc
	wake    chan struct{}         // room for one

	// next is the first revision that was not looked at, and behind says that the last look did not
	// reach the newest one. Only the watcher's goroutine uses them.
	next   int64
	behind bool
	// missed is the first revision since the watcher last looked at everything that has an event for
	// it, 0 if there is none. Apply writes it, holding Store.mu; the watcher's goroutine reads and
	// resets it, holding Store.mu for reading, as Stats does that looks at it.
	missed atomic.Int64
	// told is the last revision that the receiver was told of.
	told atomic.Int64
	// busy says that deliver runs.
	busy atomic.Bool
}

// watchers are the watches that run. It is guarded by Store.mu.
type watchers struct {
	list []*watcher
}

// notify wakes the watchers that a transaction concerns.
func (ws *watchers) notify(written []*record) {
	for _, w := range ws.list {
		if w.missed.Load() == 0 && w.concerned(written) {
			w.missed.Store(written[0].rev.Main)
			kick(w.wake)
		}
	}
}

func (w *watcher) concerned(written []*record) bool {
	for _, r := range written {
		if w.wants(r) {
			return true
		}
	}
	return false
}

// wants reports whether a change is one that the watcher is told of.
func (w *watcher) wants(r *record) bool {
	if r.tombstone && w.req.NoDelete || !r.tombstone && w.req.NoPut {
		return false
	}
	return w.keys.contains(r.kv.Key)
}

func (ws *watchers) remove(w *watcher) {
	for i, x := range ws.list {
		if x == w {
			ws.list = append(ws.list[:i], ws.list[i+1:]...)
			return
		}
	}
}

// Watch streams the changes of the keys in a range, from a revision on, until ctx ends, a batch
// carries Err, or the store is closed (ErrClosed). The channel is closed then. Everything that is
// applied after Watch has returned is seen.
//
// A watch can start at the compacted revision itself, as in etcd, deletes included (KV-01). With
// PrevKV it has to start above: the versions before are gone (but see PartialPrevKV). Below, the first and only batch
// carries ErrCompacted (KV-17). The same happens later to a watcher so slow that a compaction passes it.
func (s *Store) Watch(ctx context.Context, req WatchRequest) <-chan WatchBatch {
	out := make(chan WatchBatch, 1)
	w := newWatcher(req)
	w.out, w.deliver = out, func(b WatchBatch) bool {
		select {
		case out <- b:
			return true
		case <-ctx.Done():
		case <-s.background.stop:
			endClosed(out, b.Revision)
		}
		return false
	}
	s.start(ctx, w, func() { close(out) })
	return out
}

// WatchFunc is Watch with calls in place of a channel: deliver gets each batch in the watch's own goroutine, which
// spares waking another one. The watch also ends when deliver returns false. The channel that is returned is closed when
// no more calls will come. The end of ctx does not interrupt deliver, and Close waits until it has returned.
func (s *Store) WatchFunc(ctx context.Context, req WatchRequest, deliver func(WatchBatch) bool) <-chan struct{} {
	done := make(chan struct{})
	w := newWatcher(req)
	w.deliver = deliver
	s.start(ctx, w, func() { close(done) })
	return done
}

func newWatcher(req WatchRequest) *watcher {
	return &watcher{req: req, keys: keyRange{req.Key, req.End}, wake: make(chan struct{}, 1)}
}

// start starts a watcher's goroutine, which calls ended at the end.
func (s *Store) start(ctx context.Context, w *watcher, ended func()) {
	err := s.register(w, func() {
		defer ended()
		defer s.unregister(w)
		s.serve(ctx, w)
	})
	if err != nil {
		w.deliver(WatchBatch{Revision: s.Revision(), Err: err})
		ended()
	}
}

// register lets a watcher see all that is applied from now on, and runs run in a goroutine; not if the store is closed.
func (s *Store) register(w *watcher, run func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	w.next = w.req.StartRevision
	if w.next <= 0 {
		w.next = s.meta.revision + 1
	}
	w.told.Store(w.next - 2) // so that the first progress, at next-1, is news
	if w.next <= s.meta.revision {
		w.missed.Store(w.next)
	}
	s.watchers.list = append(s.watchers.list, w)
	s.background.group.Go(run)
	return nil
}

// serve is a watcher's goroutine.
func (s *Store) serve(ctx context.Context, w *watcher) {
	for {
		batch, more := s.collect(w)
		if batch.Err != nil || len(batch.Events) > 0 || w.req.Progress && batch.Revision > w.told.Load() {
			if !s.hand(w, batch) || batch.Err != nil {
				return
			}
		}
		if more {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		case <-s.background.stop:
			s.hand(w, WatchBatch{Revision: batch.Revision, Err: ErrClosed})
			return
		}
	}
}

// hand gives the receiver a batch; false if the receiver wants no more.
func (s *Store) hand(w *watcher, b WatchBatch) bool {
	w.busy.Store(true)
	defer w.busy.Store(false)
	if !w.deliver(b) {
		return false
	}
	w.told.Store(b.Revision)
	s.counts.Events.Add(int64(len(b.Events)))
	return true
}

// slow reports whether the receiver leaves events lying while more have come.
func (w *watcher) slow() bool {
	return w.missed.Load() > 0 && (len(w.out) > 0 || w.out == nil && w.busy.Load())
}

// endClosed makes ErrClosed the last batch, in place of one that nobody has taken yet if need be:
// the receiver will resume from what it has seen, and Close must not wait for it.
func endClosed(out chan WatchBatch, revision int64) {
	select {
	case <-out:
	default:
	}
	out <- WatchBatch{Revision: revision, Err: ErrClosed}
}

func (s *Store) unregister(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers.remove(w)
}

// RequestProgress lets the watches that ask for progress catch up with the newest revision now,
// rather than at the next ProgressInterval.
func (s *Store) RequestProgress() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, w := range s.watchers.list {
		if w.req.Progress && w.told.Load() < s.meta.revision {
			kick(w.wake)
		}
	}
}
