package watch

import (
	"context"
	"sync"

	"github.com/google/btree"

	"kontiki/mvcc"
)

// treeDegree is the branching of the object tree: nodes of up to 63 pointers, half a kilobyte to
// copy when a write meets a node that a snapshot still holds.
const treeDegree = 32

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

// NewCache returns a cache of the objects whose keys begin with prefix, which ends in "/". It costs
// nothing until it is used, then a kilobyte and what its objects take, and no goroutine. It lives as
// long as the feed.
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

// now is the revision of the state that the cache holds. The feed moves its revision after it has
// applied a batch everywhere, so whatever it is, this cache has all of it; and while a batch is being
// applied this cache may be ahead. c.mu is held.
func (c *Cache) now() int64 { return max(c.revision, c.feed.Revision()) }

// object wraps a stored version.
func (c *Cache) object(kv mvcc.KeyValue) *Object {
	return NewObject(string(kv.Key), kv.Value, kv.ModRevision, kv.CreateRevision, c.codec)
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
