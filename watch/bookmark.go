package watch

import (
	"context"
	"time"
)

// bookmarkTimer fires when the next bookmark is due; never, if nobody asked for any.
func (w *Watcher) bookmarkTimer(ctx context.Context) (<-chan time.Time, func()) {
	if !w.options.Bookmarks {
		return nil, func() {}
	}
	due := w.lastBookmark.Add(w.cache.feed.config.BookmarkPeriod)
	if deadline, ok := ctx.Deadline(); ok {
		last := deadline.Add(-finalBookmark)
		if w.lastBookmark.Before(last) && last.Before(due) {
			due = last
		}
	}
	timer := time.NewTimer(time.Until(due))
	return timer.C, func() { timer.Stop() }
}

// bookmark tells the client up to where it has seen everything. Live and with nothing left to read,
// that is the cache's present revision, however long ago the last event was.
func (w *Watcher) bookmark() []Event {
	w.lastBookmark = time.Now()
	return []Event{{Type: Bookmark, Revision: w.revision}}
}

// withBookmark adds a bookmark that has become due while there was always something to deliver.
func (w *Watcher) withBookmark(events []Event) []Event {
	if !w.options.Bookmarks || time.Since(w.lastBookmark) < w.cache.feed.config.BookmarkPeriod {
		return events
	}
	return append(events, w.bookmark()...)
}
