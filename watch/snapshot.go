package watch

import (
	"context"
	"errors"

	"github.com/google/btree"

	"kontiki/mvcc"
)

// Snapshot is the state of a cache's objects at one revision. It never changes, and reading it takes
// no lock; it keeps the objects in memory that it alone still refers to.
type Snapshot struct {
	Revision int64
	tree     *btree.BTreeG[*Object]
}

// Len is the number of objects.
func (s *Snapshot) Len() int { return s.tree.Len() }

// Ascend calls visit for the objects with keys in [start, end), in order, until it returns false.
func (s *Snapshot) Ascend(start, end string, visit func(*Object) bool) {
	s.tree.AscendRange(&Object{Key: start}, &Object{Key: end}, visit)
}

// Snapshot returns the newest state that the cache knows.
func (c *Cache) Snapshot(ctx context.Context) (*Snapshot, error) {
	for {
		if err := c.load(ctx); err != nil {
			return nil, err
		}
		if s := c.snapshot(); s != nil {
			return s, nil
		}
	}
}

// snapshot is nil if the cache is not loaded.
func (c *Cache) snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != loaded {
		return nil
	}
	return &Snapshot{Revision: c.now(), tree: c.snapshotTree()}
}

// snapshotTree clones the tree, once for all who ask between two changes. c.mu is held.
func (c *Cache) snapshotTree() *btree.BTreeG[*Object] {
	if c.clone == nil {
		c.clone = c.tree.Clone()
	}
	return c.clone
}

// SnapshotAt returns the state at a revision that the cache has reached. It takes a recent one from
// memory, by undoing the changes since, and any other from the store's history: that one is decoded
// for this caller alone. The error is an *ExpiredError if the store has compacted the revision, also
// when memory has it still: all servers say the same, and what a quiet cache knows does not outlive
// the retention. Only keys in [start, end) are sure to be in it.
func (c *Cache) SnapshotAt(ctx context.Context, revision int64, start, end string) (*Snapshot, error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	if s := c.recent(revision); s != nil {
		if _, err := c.feed.source.Range(ctx, mvcc.RangeRequest{Key: []byte(start), Revision: revision}); errors.Is(err, mvcc.ErrCompacted) {
			return nil, c.feed.Expired(ctx, err, revision)
		}
		return s, nil
	}
	tree, _, err := c.read(ctx, start, end, revision)
	if err != nil {
		return nil, c.feed.Expired(ctx, err, revision)
	}
	return &Snapshot{Revision: revision, tree: tree}, nil
}

// recent is nil if the changelog does not reach back to revision, or the cache has not reached it.
func (c *Cache) recent(revision int64) *Snapshot {
	c.mu.Lock()
	if c.state != loaded || revision > c.now() {
		c.mu.Unlock()
		return nil
	}
	position, ok := c.log.after(revision)
	if !ok {
		c.mu.Unlock()
		return nil
	}
	tree := c.snapshotTree()
	changes, _ := c.log.read(position, len(c.log.changes))
	if len(changes) > 0 {
		tree = c.tree.Clone() // our own, to change
		changes = append([]*change(nil), changes...)
	}
	c.mu.Unlock()
	undo(tree, changes)
	return &Snapshot{Revision: revision, tree: tree}
}

// undo takes the changes back, newest first.
func undo(tree *btree.BTreeG[*Object], changes []*change) {
	for i := len(changes) - 1; i >= 0; i-- {
		if c := changes[i]; c.previous != nil {
			tree.ReplaceOrInsert(c.previous)
		} else {
			tree.Delete(c.object)
		}
	}
}
