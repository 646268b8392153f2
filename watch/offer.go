package watch

import "kontiki/mvcc"

// maxOffers bounds the offers that wait for the feed; more are not taken, which costs a second decoding.
const maxOffers = 1024

// Offer gives the cache the Object that its caller made of a write, and returns the one to use
// instead, if the feed was faster. So the answer to the write, its watchers and later readers all
// share one decoded object and one set of encodings.
func (c *Cache) Offer(o *Object) *Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != loaded {
		return o
	}
	if known, ok := c.tree.Get(o); ok && known.Revision == o.Revision {
		return known
	}
	if o.Revision > c.now() && len(c.offered) < maxOffers {
		c.offered[o.Revision] = o
	}
	return o
}

// accept returns the object that was offered for a stored version, or a new one. c.mu is held.
func (c *Cache) accept(kv mvcc.KeyValue) *Object {
	if o := c.offered[kv.ModRevision]; o != nil && o.Key == string(kv.Key) {
		return o
	}
	return c.object(kv)
}

// forgetOffers drops the offers that the feed has passed. c.mu is held.
func (c *Cache) forgetOffers() {
	for revision := range c.offered {
		if revision <= c.revision {
			delete(c.offered, revision)
		}
	}
}
