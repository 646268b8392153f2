package watch

import (
	"context"
	"time"
)

// batchLimit is about how many events Next returns at once. It bounds what is in memory between a
// cache and a client; what the client does not take stays in the changelog, which everybody shares.
const batchLimit = 500

// WatchOptions of Cache.Watch.
type WatchOptions struct {
	Filter Filter
	// Initial starts with an ADDED event for every object of this snapshot, and goes on from its
	// revision. InitialEnd then adds the bookmark that marks the end of the initial events.
	Initial    *Snapshot
	InitialEnd bool
	// Revision starts with the first change after it, if Initial is nil.
	Revision int64
	// Bookmarks asks for a bookmark every Config.BookmarkPeriod.
	Bookmarks bool
}

// Watcher is a position in the stream of changes. It belongs to one goroutine.
//
// It is in one of three phases: it delivers the initial state; it reads changes from the cache's
// changelog (live); or it reads history from the store, because it started before the changelog did
// or has fallen behind it. From history it goes live as soon as it has got to where the changelog starts.
type Watcher struct {
	cache   *Cache
	options WatchOptions
	epoch   int64

	revision     int64 // everything up to here has been delivered
	lastBookmark time.Time

	initial  *Snapshot // what is left of it begins at initialKey
	nextKey  string
	live     bool   // position is valid. Guarded by cache.mu, as position is: trimming looks at both
	position uint64 // in the changelog: the next change to read
	history  *history
}

// Watch starts a watcher. The caller must Stop it.
func (c *Cache) Watch(ctx context.Context, options WatchOptions) (*Watcher, error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	w := &Watcher{cache: c, options: options, epoch: c.feed.epoch.Load(), revision: options.Revision, lastBookmark: time.Now()}
	if options.Initial != nil {
		w.initial, w.nextKey, w.revision = options.Initial, options.Filter.Start, options.Initial.Revision
	}
	c.mu.Lock()
	c.watchers[w] = struct{}{}
	c.mu.Unlock()
	w.goLive() // from now on the changelog waits for it, within its bounds
	return w, nil
}

// Stop releases what the watcher holds.
func (w *Watcher) Stop() {
	w.leaveHistory()
	w.cache.mu.Lock()
	defer w.cache.mu.Unlock()
	delete(w.cache.watchers, w)
}

// Revision is the revision up to which the watcher has delivered everything.
func (w *Watcher) Revision() int64 { return w.revision }

// Next waits for events and returns all that are at hand, up to some hundreds. Its error ends the
// watch: an *ExpiredError if changes that the watcher needs are compacted (410), ctx's error, ErrClosed,
// a *CorruptError, or the source's own error; after the last the client may watch again from where it is.
// If ctx has a deadline and bookmarks are on, a last one comes shortly before it.
func (w *Watcher) Next(ctx context.Context) ([]Event, error) {
	for {
		events, err := w.step(ctx)
		if err != nil {
			return nil, err
		}
		if len(events) > 0 {
			return events, nil
		}
	}
}

// step does one thing: it may return no events, but then it has waited or changed phase.
func (w *Watcher) step(ctx context.Context) ([]Event, error) {
	if w.epoch != w.cache.feed.epoch.Load() {
		return nil, w.cache.feed.gone(w.revision, 0)
	}
	switch {
	case w.initial != nil:
		return w.nextInitial()
	case w.history != nil:
		return w.nextFromHistory(ctx)
	default:
		return w.nextLive(ctx)
	}
}

// nextInitial delivers a part of the initial state, and what marks its end.
func (w *Watcher) nextInitial() ([]Event, error) {
	var events []Event
	var failure error
	done := true
	w.initial.Ascend(w.nextKey, w.options.Filter.End, func(o *Object) bool {
		if len(events) == batchLimit {
			w.nextKey, done = o.Key, false
			return false
		}
		ok, err := w.options.Filter.Matches(o)
		if ok {
			events = append(events, Event{Type: Added, Object: o, Revision: o.Revision})
		}
		failure = err
		return err == nil
	})
	if done {
		w.initial = nil
		if w.options.InitialEnd {
			events = append(events, Event{Type: Bookmark, Revision: w.revision, InitialEventsEnd: true})
		}
	}
	return events, failure
}

// nextLive delivers what the changelog holds, or waits for it to grow.
func (w *Watcher) nextLive(ctx context.Context) ([]Event, error) {
	changes, wake, ok := w.take()
	if !ok {
		w.enterHistory()
		return nil, nil
	}
	if len(changes) == 0 && !w.bookmarkDue(ctx) {
		return nil, w.wait(ctx, wake)
	}
	events, err := w.filter(changes)
	return w.withBookmark(ctx, events), err
}

// take reads from the changelog and moves on. If there is nothing to read it returns what will be
// closed when there is, and everything up to the cache's present revision counts as delivered.
func (w *Watcher) take() (changes []*change, wake <-chan struct{}, ok bool) {
	c := w.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if !w.live {
		return nil, nil, false
	}
	shared, ok := c.log.read(w.position, batchLimit)
	if !ok || c.state != loaded {
		w.live = false
		return nil, nil, false
	}
	w.position += uint64(len(shared))
	for _, ch := range shared {
		// History may have been ahead of the feed: what came from there does not come again.
		if ch.revision > w.revision {
			changes = append(changes, ch)
		}
	}
	if w.position == c.log.end() {
		w.revision = max(w.revision, c.now())
		wake = c.waiting()
	} else if len(changes) > 0 {
		w.revision = changes[len(changes)-1].revision
	}
	return changes, wake, true
}

// filter turns changes into what the client sees of them.
func (w *Watcher) filter(changes []*change) ([]Event, error) {
	var events []Event
	for _, c := range changes {
		event, ok, err := c.event(w.options.Filter)
		if err != nil {
			return nil, err
		}
		if ok {
			events = append(events, event)
		}
	}
	return events, nil
}

// wait returns when wake is closed or a bookmark is due.
func (w *Watcher) wait(ctx context.Context, wake <-chan struct{}) error {
	due, stop := w.bookmarkTimer(ctx)
	defer stop()
	select {
	case <-wake:
		return nil
	case <-due:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.cache.feed.closing:
		return ErrClosed
	}
}

// goLive tries to enter the changelog behind what has been delivered.
func (w *Watcher) goLive() bool {
	c := w.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == loaded {
		w.position, w.live = c.log.after(w.revision)
	}
	return w.live
}
