package watch

import (
	"context"
	"errors"
	"time"

	"kontiki/mvcc"
)

// history is a watcher's own watch on the store, for changes that the changelog no longer has.
type history struct {
	batches <-chan mvcc.WatchBatch
	cancel  context.CancelFunc
}

// enterHistory starts to read the store from behind what has been delivered.
func (w *Watcher) enterHistory() {
	// The stream outlives this call of Next: it ends with leaveHistory.
	ctx, cancel := context.WithCancel(context.Background())
	filter := w.options.Filter
	w.history = &history{cancel: cancel, batches: w.cache.feed.source.Watch(ctx, mvcc.WatchRequest{
		Key: []byte(filter.Start), End: []byte(filter.End),
		StartRevision: w.revision + 1, PrevKV: true, Progress: true,
	})}
}

func (w *Watcher) leaveHistory() {
	if w.history != nil {
		w.history.cancel()
		w.history = nil
	}
}

// nextFromHistory delivers a batch of old changes. A batch holds whole revisions, so between two
// batches the watcher can change over to the changelog by its revision alone.
func (w *Watcher) nextFromHistory(ctx context.Context) ([]Event, error) {
	if w.rejoin(ctx) {
		return nil, nil
	}
	due, stop := w.bookmarkTimer(ctx)
	defer stop()
	select {
	case batch, ok := <-w.history.batches:
		if !ok {
			return nil, errStreamEnded
		}
		return w.replay(batch)
	case <-due:
		return w.withBookmark(ctx, nil), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.cache.feed.closing:
		return nil, ErrClosed
	}
}

// rejoin goes live if the changelog reaches back to what has been delivered.
func (w *Watcher) rejoin(ctx context.Context) bool {
	if err := w.cache.load(ctx); err != nil { // it may have been dropped
		return false
	}
	if !w.goLive() {
		return false
	}
	w.leaveHistory()
	return true
}

// replay turns a batch of the store's history into events.
func (w *Watcher) replay(batch mvcc.WatchBatch) ([]Event, error) {
	if batch.Err != nil {
		return nil, w.cache.feed.expired(batch.Err, w.revision, batch.CompactRevision)
	}
	var changes []*change
	for _, event := range batch.Events {
		c, err := w.oldChange(event)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	w.revision = max(w.revision, batch.Revision)
	return w.filter(changes)
}

// oldChange makes a change of an event that carries its previous version itself. A version that
// should be there and is not has been compacted while we read: whether the client has seen the
// object before cannot be told any more.
func (w *Watcher) oldChange(event mvcc.Event) (*change, error) {
	c := &change{revision: event.KV.ModRevision}
	if event.PrevKV != nil {
		c.previous = w.cache.object(*event.PrevKV)
	}
	if event.Type == mvcc.PutEvent {
		c.object = w.cache.object(event.KV)
	}
	created := event.Type == mvcc.PutEvent && event.KV.CreateRevision == event.KV.ModRevision
	if c.previous == nil && !created {
		return nil, w.cache.feed.gone(w.revision, 0)
	}
	return c, nil
}

// expired words the store's ErrCompacted as ours, and passes other errors through.
func (f *Feed) expired(err error, requested, compacted int64) error {
	if errors.Is(err, mvcc.ErrCompacted) {
		return f.gone(requested, compacted)
	}
	return err
}

func (f *Feed) gone(requested, compacted int64) *ExpiredError {
	return &ExpiredError{Requested: requested, Compacted: compacted, Current: f.Revision(), Retention: f.config.Retention}
}

// Expired makes an *ExpiredError of the ErrCompacted with which the source refused to read at a
// revision, and passes other errors through. How far the source is compacted it learns from a watch
// that starts at that revision: it is the one answer that says so.
func (f *Feed) Expired(ctx context.Context, err error, requested int64) error {
	if !errors.Is(err, mvcc.ErrCompacted) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, compactedWait)
	defer cancel()
	batches := f.source.Watch(ctx, mvcc.WatchRequest{Key: everyKey, StartRevision: requested, PrevKV: true})
	select {
	case batch := <-batches:
		return f.expired(err, requested, batch.CompactRevision)
	case <-ctx.Done():
		return f.expired(err, requested, 0)
	}
}

// compactedWait bounds the wait for a figure that only makes an error message better.
const compactedWait = 200 * time.Millisecond
