package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/btree"

	"kontiki/mvcc"
)

// treeDegree is the branching of the object tree: nodes of up to 63 pointers, half a kilobyte to
// copy when a write meets a node that a snapshot still holds.
const treeDegree = 32

// loadPageSize is how many keys a cache asks the store for at a time while it loads.
const loadPageSize = 1000

// loadAttempts is how often loading starts over when the store is compacted or the feed restarts
// in the middle of it.
const loadAttempts = 5

// Cache holds the newest state of every object below a prefix, and its recent changes. It loads
// itself from the store when it is first used, and follows the feed from then on.
type Cache struct {
	feed   *Feed
	prefix string // ends in "/"
	codec  Codec

	loader   chan struct{} // holds a token; whoever takes it may load
	incoming []mvcc.Event  // the feed's: events of the batch being dispatched

	mu       sync.Mutex // guards what follows; taken after the feed's mu, never before it
	state    loadState
	pending  []pendingBatch // arrived while loading
	tree     *btree.BTreeG[*Object]
	clone    *btree.BTreeG[*Object] // a clone of tree, as long as tree has not changed since
	loadedAt int64                  // revision of the state that the tree began with
	revision int64                  // of the last batch that concerned this cache, or loadedAt
	log      changelog
	offered  map[int64]*Object // by revision: see Offer
	watchers map[*Watcher]struct{}
	wake     chan struct{} // closed when the log grows or is dropped; nil while nobody waits
}

type loadState uint8

const (
	unloaded loadState = iota
	loading
	loaded
)

// pendingBatch is a batch that waits for the load to end. How many there are is bounded only by how
// long a load takes; they hold what the store holds anyway.
type pendingBatch struct {
	events   []mvcc.Event
	revision int64
}

// NewCache returns a cache of the objects whose keys begin with prefix, which ends in "/". It costs
// nothing until it is used. It lives as long as the feed.
func NewCache(feed *Feed, prefix string, codec Codec) *Cache {
	return &Cache{
		feed: feed, prefix: prefix, codec: codec,
		loader:   make(chan struct{}, 1),
		offered:  map[int64]*Object{},
		watchers: map[*Watcher]struct{}{},
	}
}

// Prefix is what the keys of the cache's objects begin with.
func (c *Cache) Prefix() string { return c.prefix }

// Get returns the newest version of an object that the cache knows, nil if it knows none, and the
// revision that this is the state of.
func (c *Cache) Get(ctx context.Context, key string) (*Object, int64, error) {
	for {
		if err := c.load(ctx); err != nil {
			return nil, 0, err
		}
		if object, revision, ok := c.get(key); ok {
			return object, revision, nil
		}
	}
}

func (c *Cache) get(key string) (object *Object, revision int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != loaded { // dropped since
		return nil, 0, false
	}
	object, _ = c.tree.Get(&Object{Key: key})
	return object, c.now(), true
}

// errDropped: the feed restarted while the cache was loading.
var errDropped = errors.New("watch: cache was dropped while it was loaded")

// now is the revision of the state that the cache holds. The feed moves its revision after it has
// applied a batch everywhere, so whatever it is, this cache has all of it; and while a batch is being
// applied this cache may be ahead. c.mu is held.
func (c *Cache) now() int64 { return max(c.revision, c.feed.Revision()) }

// load makes sure that the cache is loaded.
func (c *Cache) load(ctx context.Context) error {
	if c.isLoaded() {
		return nil
	}
	select {
	case c.loader <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.loader }()
	for attempt := 1; !c.isLoaded(); attempt++ {
		err := c.loadOnce(ctx)
		if err != nil && (attempt == loadAttempts || ctx.Err() != nil || errors.Is(err, ErrClosed)) {
			return fmt.Errorf("load %s: %w", c.prefix, err)
		}
	}
	return nil
}

func (c *Cache) isLoaded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == loaded
}

// loadOnce joins the feed first and reads the newest state second, so that there is no gap: whatever
// is not in the state that it reads, the feed will deliver. What the feed delivers a second time is
// known by its revision (applyEvent).
func (c *Cache) loadOnce(ctx context.Context) error {
	if err := c.feed.join(ctx, c); err != nil {
		return err
	}
	tree := btree.NewG(treeDegree, func(a, b *Object) bool { return a.Key < b.Key })
	revision, err := c.feed.scan(ctx, c.prefix, PrefixEnd(c.prefix), 0, func(kv mvcc.KeyValue) {
		tree.ReplaceOrInsert(c.object(kv))
	})
	if err == nil {
		err = c.finishLoading(tree, revision)
	}
	if err != nil {
		c.feed.leave(c)
	}
	return err
}

// scan calls visit for every key in [start, end), page by page, as of a revision, which it returns; 0
// is the newest.
func (f *Feed) scan(ctx context.Context, start, end string, revision int64, visit func(mvcc.KeyValue)) (int64, error) {
	for {
		page, err := f.source.Range(ctx, mvcc.RangeRequest{
			Key: []byte(start), End: []byte(end), Revision: revision, Limit: loadPageSize,
		})
		if err != nil {
			return 0, err
		}
		if revision == 0 {
			revision = page.Revision // for the pages to come
		}
		for _, kv := range page.KVs {
			visit(kv)
		}
		if !page.More || len(page.KVs) == 0 {
			return revision, nil
		}
		start = string(page.KVs[len(page.KVs)-1].Key) + "\x00"
	}
}

// object wraps a stored version.
func (c *Cache) object(kv mvcc.KeyValue) *Object {
	return NewObject(string(kv.Key), kv.Value, kv.ModRevision, kv.CreateRevision, c.codec)
}

// startLoading is called by the feed, under its mu, when the cache joins.
func (c *Cache) startLoading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.pending = loading, nil
}

// finishLoading takes the loaded tree into use, unless the feed has restarted since loading began.
func (c *Cache) finishLoading(tree *btree.BTreeG[*Object], revision int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != loading {
		return errDropped
	}
	c.state, c.tree, c.revision, c.loadedAt = loaded, tree, revision, revision
	c.log = changelog{first: c.log.end(), floor: revision}
	for _, batch := range c.pending {
		c.applyLoaded(batch.events, batch.revision)
	}
	c.pending = nil
	return nil
}

// unload forgets everything. Watchers notice by their position, which is behind the new log.
func (c *Cache) unload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.pending, c.tree, c.clone = unloaded, nil, nil, nil
	c.log = changelog{first: c.log.end() + 1}
	clear(c.offered)
	c.broadcast()
}

// apply is called by the feed with the events of a batch that concern this cache.
func (c *Cache) apply(events []mvcc.Event, revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state {
	case loading:
		c.pending = append(c.pending, pendingBatch{append([]mvcc.Event(nil), events...), revision})
	case loaded:
		c.applyLoaded(events, revision)
	}
}

func (c *Cache) applyLoaded(events []mvcc.Event, revision int64) {
	for _, event := range events {
		c.applyEvent(event)
	}
	c.clone = nil
	c.revision = max(c.revision, revision)
	c.forgetOffers()
	if keep := c.feed.config.KeepChanges; len(c.log.changes) > keep+keep/4 { // not for each change
		c.log.trim(keep, c.feed.config.MaxChanges, c.needed())
	}
	c.broadcast()
}

// applyEvent updates the tree and the log, unless the event was in what the cache was loaded from.
func (c *Cache) applyEvent(event mvcc.Event) {
	if event.KV.ModRevision <= c.loadedAt {
		return
	}
	next := &change{revision: event.KV.ModRevision}
	if event.Type == mvcc.DeleteEvent {
		next.previous, _ = c.tree.Delete(&Object{Key: string(event.KV.Key)})
		if next.previous == nil {
			return
		}
	} else {
		next.object = c.accept(event.KV)
		next.previous, _ = c.tree.ReplaceOrInsert(next.object)
	}
	c.log.append(next)
}

// needed is the lowest position that a watcher has yet to read.
func (c *Cache) needed() uint64 {
	lowest := c.log.end()
	for w := range c.watchers {
		if w.live {
			lowest = min(lowest, w.position)
		}
	}
	return lowest
}

// broadcast wakes the waiting watchers. c.mu is held.
func (c *Cache) broadcast() {
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// waiting returns what broadcast will close. c.mu is held.
func (c *Cache) waiting() <-chan struct{} {
	if c.wake == nil {
		c.wake = make(chan struct{})
	}
	return c.wake
}

// sweep lets go of decoded objects and encodings that nobody has used since the last sweep.
func (c *Cache) sweep() {
	c.mu.Lock()
	if c.state != loaded {
		c.mu.Unlock()
		return
	}
	tree := c.snapshotTree()
	changes := append([]*change(nil), c.log.changes...)
	c.mu.Unlock()
	tree.Ascend(func(o *Object) bool {
		o.sweep()
		return true
	})
	for i := range changes {
		changes[i].sweep()
	}
}
