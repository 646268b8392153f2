package watch

import (
	"context"
	"time"
)

// What can be computed again from an object's stored bytes stays in memory while it is asked for: with
// each sweep, objects that nobody has used since the sweep before fall back to their bytes.

// sweepEvery lets every cache drop what nobody uses, once a period.
func (f *Feed) sweepEvery(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, c := range f.joined() {
			c.sweep()
		}
	}
}

func (f *Feed) joined() []*Cache {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*Cache
	for _, caches := range f.caches {
		all = append(all, caches...)
	}
	return all
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

// sweep lets go of what can be computed again. (The new state is in the tree, or in a later change.)
func (c *change) sweep() {
	for _, o := range []*Object{c.previous, c.last.Load()} {
		if o != nil {
			o.sweep()
		}
	}
}

// sweep drops what can be computed again if nobody has used the object since the last sweep.
func (o *Object) sweep() {
	if o.used.Swap(false) {
		return
	}
	o.mu.Lock()
	o.memo = memo{}
	o.mu.Unlock()
}
