package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kontiki/mvcc"
)

// errStreamEnded: the source closed a watch without saying why.
var errStreamEnded = errors.New("watch: the source ended the stream")

// Feed follows the whole store with a single watch and hands each change to the caches it concerns.
//
// One watch rather than one for each resource keeps every cache at the same revision: a consistent
// list of a resource that has been quiet for days waits for the feed, which any write moves on, and
// not for a progress message about that resource. Every revision of the store has at least one event,
// so the feed reaches each of them.
type Feed struct {
	source Source
	config Config
	memos  Memos // of all caches

	cancel  context.CancelFunc
	closing chan struct{} // closed when Close begins
	done    sync.WaitGroup

	// revision is the store revision that every loaded cache has reached. Written under mu.
	revision atomic.Int64
	// epoch counts how often the store has gone back in time (restored from a backup). What was
	// read in an earlier epoch cannot be continued.
	epoch atomic.Int64

	mu       sync.Mutex          // guards what follows; taken before a Cache's mu
	caches   map[string][]*Cache // those that have joined, by prefix
	ready    bool                // revision is known
	advanced chan struct{}       // closed when revision moves; nil while nobody waits
}

// NewFeed starts to follow source. It returns at once; Wait and the caches wait until the source answers.
func NewFeed(source Source, config Config) *Feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Feed{
		source:  source,
		config:  config.withDefaults(),
		cancel:  cancel,
		closing: make(chan struct{}),
		caches:  map[string][]*Cache{},
	}
	f.done.Go(func() { f.run(ctx) })
	f.done.Go(func() { f.sweepEvery(ctx, f.config.SweepPeriod) })
	return f
}

// Close ends the feed and every watcher (with ErrClosed). It must be called once.
func (f *Feed) Close() {
	close(f.closing)
	f.cancel()
	f.done.Wait()
}

// Memos bounds what the large objects of all caches remember.
func (f *Feed) Memos() *Memos { return &f.memos }

// Revision is the store revision that the feed, and with it every loaded cache, has reached.
func (f *Feed) Revision() int64 { return f.revision.Load() }

// Wait returns once the feed has reached revision.
func (f *Feed) Wait(ctx context.Context, revision int64) error {
	for {
		advanced, ok := f.reached(revision)
		if ok {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.closing:
			return ErrClosed
		}
	}
}

// reached reports whether the feed is at revision, and otherwise returns what is closed when it moves.
func (f *Feed) reached(revision int64) (<-chan struct{}, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ready && f.revision.Load() >= revision {
		return nil, true
	}
	if f.advanced == nil {
		f.advanced = make(chan struct{})
	}
	return f.advanced, false
}

// run follows the source, again and again, until ctx ends.
func (f *Feed) run(ctx context.Context) {
	told := "" // the last reason logged: an outage is not worth a line for each attempt
	for ctx.Err() == nil {
		revision := f.Revision()
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if err.Error() != told || f.Revision() != revision {
			told = err.Error()
			f.config.Log.Warn("watch feed interrupted", "revision", f.Revision(), "err", err)
		}
		select {
		case <-time.After(f.config.RetryPeriod):
		case <-ctx.Done():
		}
	}
}

// everyKey starts and, by etcd's convention for an open end, also ends the range of all keys.
var everyKey = []byte{0}

// follow dispatches what the source streams until the stream ends.
func (f *Feed) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // releases the source's stream
	newest, err := f.source.Revision(ctx)
	if err != nil {
		return err
	}
	f.resume(newest)
	// No PrevKV: a cache knows the previous version. That saves the store a read for every write.
	batches := f.source.Watch(ctx, mvcc.WatchRequest{
		Key: everyKey, End: everyKey, StartRevision: f.Revision() + 1, Progress: true,
	})
	for batch := range batches {
		if errors.Is(batch.Err, mvcc.ErrCompacted) {
			f.restart(newest)
		}
		if batch.Err != nil {
			return batch.Err
		}
		f.dispatch(batch)
	}
	return errStreamEnded
}

// resume prepares the feed to go on where it was: at newest if it is new, or if the store has gone
// back in time since.
func (f *Feed) resume(newest int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ready && newest < f.revision.Load() {
		f.epoch.Add(1)
		f.unloadAll()
		f.moveTo(newest)
	}
	if !f.ready {
		f.ready = true
		f.moveTo(newest)
	}
}

// restart skips to newest because the changes in between are compacted. The caches will be loaded
// anew; their watchers turn to history, and so learn themselves whether they have missed anything.
func (f *Feed) restart(newest int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unloadAll()
	f.moveTo(newest)
}

func (f *Feed) unloadAll() {
	for _, caches := range f.caches {
		for _, c := range caches {
			c.unload()
		}
	}
	clear(f.caches)
}

// moveTo sets the revision and wakes those who wait for it. f.mu is held.
func (f *Feed) moveTo(revision int64) {
	f.revision.Store(revision)
	if f.advanced != nil {
		close(f.advanced)
		f.advanced = nil
	}
}

// dispatch applies one batch to every cache it concerns, and only then moves the feed's revision.
func (f *Feed) dispatch(batch mvcc.WatchBatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var touched []*Cache
	for _, event := range batch.Events {
		touched = f.route(event, touched)
	}
	for _, c := range touched {
		c.apply(c.incoming, batch.Revision)
		clear(c.incoming)
		c.incoming = c.incoming[:0]
	}
	if batch.Revision > f.revision.Load() {
		f.moveTo(batch.Revision)
	}
}

// route leaves event with the caches of every prefix of its key: "/registry/pods/default/web" is
// looked up as "/", "/registry/", "/registry/pods/" and "/registry/pods/default/".
func (f *Feed) route(event mvcc.Event, touched []*Cache) []*Cache {
	for i, b := range event.KV.Key {
		if b != '/' {
			continue
		}
		for _, c := range f.caches[string(event.KV.Key[:i+1])] {
			if len(c.incoming) == 0 {
				touched = append(touched, c)
			}
			c.incoming = append(c.incoming, event)
		}
	}
	return touched
}

// join lets c have every change from now on.
func (f *Feed) join(ctx context.Context, c *Cache) error {
	if err := f.Wait(ctx, 0); err != nil { // until it is ready
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caches[c.prefix] = append(f.caches[c.prefix], c)
	c.startLoading()
	return nil
}

// leave undoes join.
func (f *Feed) leave(c *Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.unload()
	rest := slices.DeleteFunc(f.caches[c.prefix], func(other *Cache) bool { return other == c })
	if f.caches[c.prefix] = rest; len(rest) == 0 {
		delete(f.caches, c.prefix)
	}
}
