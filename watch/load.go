package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/btree"

	"kontiki/mvcc"
)

// loadPageSize is how many keys a cache asks the store for at a time while it loads.
const loadPageSize = 1000

// loadAttempts is how often loading starts over when the store is compacted or the feed restarts
// in the middle of it.
const loadAttempts = 5

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

// errDropped: the feed restarted while the cache was loading.
var errDropped = errors.New("watch: cache was dropped while it was loaded")

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
	tree, revision, err := c.read(ctx, c.prefix, PrefixEnd(c.prefix), 0)
	if err == nil {
		err = c.finishLoading(tree, revision)
	}
	if err != nil {
		c.feed.leave(c)
	}
	return err
}

// read builds a tree of the objects with keys in [start, end) as the store has them at a revision, which it
// returns; 0 is the newest. It reads page by page, all pages at one revision.
func (c *Cache) read(ctx context.Context, start, end string, revision int64) (*btree.BTreeG[*Object], int64, error) {
	tree := btree.NewG(treeDegree, func(a, b *Object) bool { return a.Key < b.Key })
	for {
		page, err := c.feed.source.Range(ctx, mvcc.RangeRequest{
			Key: []byte(start), End: []byte(end), Revision: revision, Limit: loadPageSize,
		})
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = page.Revision // for the pages to come
		}
		for _, kv := range page.KVs {
			tree.ReplaceOrInsert(c.object(kv))
		}
		if !page.More || len(page.KVs) == 0 {
			return tree, revision, nil
		}
		start = string(page.KVs[len(page.KVs)-1].Key) + "\x00"
	}
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

// Close frees what the cache holds and has it no longer follow the feed. Nobody may use it afterwards.
func (c *Cache) Close() { c.feed.leave(c) }

// unload forgets everything. Watchers notice by their position, which is behind the new log.
func (c *Cache) unload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.pending, c.tree, c.clone = unloaded, nil, nil, nil
	c.log = changelog{first: c.log.end() + 1}
	clear(c.offered)
	c.broadcast()
}
