package watch

import (
	"context"
	"time"
)

// finalBookmark is how long before its context's deadline a watcher sends a last bookmark, so that
// the client's next watch starts from a recent revision (as kube-apiserver does).
const finalBookmark = 2 * time.Second

// nextBookmark is when the next bookmark is due.
func (w *Watcher) nextBookmark(ctx context.Context) time.Time {
	due := w.lastBookmark.Add(w.cache.feed.config.BookmarkPeriod)
	if deadline, ok := ctx.Deadline(); ok {
		last := deadline.Add(-finalBookmark)
		if w.lastBookmark.Before(last) && last.Before(due) {
			return last
		}
	}
	return due
}

func (w *Watcher) bookmarkDue(ctx context.Context) bool {
	return w.options.Bookmarks && !time.Now().Before(w.nextBookmark(ctx))
}

// bookmarkTimer fires when the next bookmark is due; never, if nobody asked for any.
func (w *Watcher) bookmarkTimer(ctx context.Context) (<-chan time.Time, func()) {
	if !w.options.Bookmarks {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(w.nextBookmark(ctx)))
	return timer.C, func() { timer.Stop() }
}

// withBookmark adds a bookmark if one is due: it tells the client up to where it has seen everything.
// Live, with nothing left to read, that is the cache's present revision, however long ago the last event was.
func (w *Watcher) withBookmark(ctx context.Context, events []Event) []Event {
	if !w.bookmarkDue(ctx) {
		return events
	}
	w.lastBookmark = time.Now()
	return append(events, Event{Type: Bookmark, Revision: w.revision})
}
