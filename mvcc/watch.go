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
//	Apply ── missed = 7, wake ──►  watcher's goroutine ── batch ──► out (room for one) ──► receiver
//	                                  │ reads [7, newest] from tail or file
type watcher struct {
	req  WatchRequest
	keys keyRange
	out  chan WatchBatch
	wake chan struct{} // room for one

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
	w := &watcher{
		req: req, keys: keyRange{req.Key, req.End},
		out: make(chan WatchBatch, 1), wake: make(chan struct{}, 1),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		w.out <- WatchBatch{Revision: s.meta.revision, Err: ErrClosed}
		close(w.out)
		return w.out
	}
	w.next = req.StartRevision
	if w.next <= 0 {
		w.next = s.meta.revision + 1
	}
	w.told.Store(w.next - 2) // so that the first progress, at next-1, is news
	if w.next <= s.meta.revision {
		w.missed.Store(w.next)
	}
	s.watchers.list = append(s.watchers.list, w)
	s.background.group.Go(func() { s.serve(ctx, w) })
	return w.out
}

// serve is a watcher's goroutine.
func (s *Store) serve(ctx context.Context, w *watcher) {
	defer close(w.out)
	defer s.unregister(w)
	for {
		batch, more := s.collect(w)
		if batch.Err != nil || len(batch.Events) > 0 || w.req.Progress && batch.Revision > w.told.Load() {
			select {
			case w.out <- batch:
				w.told.Store(batch.Revision)
				s.counts.Events.Add(int64(len(batch.Events)))
			case <-ctx.Done():
				return
			case <-s.background.stop:
				w.endClosed(batch.Revision)
				return
			}
		}
		if batch.Err != nil {
			return
		}
		if more {
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		case <-s.background.stop:
			w.endClosed(batch.Revision)
			return
		}
	}
}

// endClosed makes ErrClosed the last batch, in place of one that nobody has taken yet if need be:
// the receiver will resume from what it has seen, and Close must not wait for it.
func (w *watcher) endClosed(revision int64) {
	select {
	case <-w.out:
	default:
	}
	w.out <- WatchBatch{Revision: revision, Err: ErrClosed}
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
