package authwebhook

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"sync"
	"time"
)

// maxKept bounds the answers that a cache keeps. When it is full, those go that are over; then any.
const maxKept = 8192

// cache keeps answers for a time each.
type cache[V any] struct {
	now func() time.Time

	mu   sync.Mutex // guards kept
	kept map[[sha256.Size]byte]kept[V]
}

type kept[V any] struct {
	value V
	until time.Time
}

func newCache[V any](now func() time.Time) *cache[V] {
	return &cache[V]{now: now, kept: map[[sha256.Size]byte]kept[V]{}}
}

// digest is what an answer is kept under; its parts are JSON, so that no two questions have the same.
func digest(parts ...any) (sum [sha256.Size]byte, size int) {
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // reviews are always JSON
	}
	return sha256.Sum256(text), len(text)
}

func (c *cache[V]) get(key [sha256.Size]byte) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.kept[key]
	if !ok || !c.now().Before(found.until) {
		return value, false
	}
	return found.value, true
}

func (c *cache[V]) put(key [sha256.Size]byte, value V, life time.Duration) {
	if life <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if len(c.kept) >= maxKept {
		maps.DeleteFunc(c.kept, func(_ [sha256.Size]byte, k kept[V]) bool { return !now.Before(k.until) })
	}
	for old := range c.kept {
		if len(c.kept) < maxKept {
			break
		}
		delete(c.kept, old)
	}
	c.kept[key] = kept[V]{value, now.Add(life)}
}
