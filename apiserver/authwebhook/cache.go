package authwebhook

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"sync"
	"time"
)

// maxKept bounds how many a cache keeps, of those that grant something and of those that refuse alike: who makes up tokens
// drives nobody out who has one. When it is full, those go that are over; then any.
const maxKept = 8192

// cache keeps answers for a time each.
type cache[V any] struct {
	now func() time.Time

	mu      sync.Mutex // guards what follows
	granted shelf[V]
	refused shelf[V]
}

// shelf has answers of one kind.
type shelf[V any] map[[sha256.Size]byte]kept[V]

type kept[V any] struct {
	value V
	until time.Time
}

func newCache[V any](now func() time.Time) *cache[V] {
	return &cache[V]{now: now, granted: shelf[V]{}, refused: shelf[V]{}}
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
	for _, s := range []shelf[V]{c.granted, c.refused} {
		if found, ok := s[key]; ok && c.now().Before(found.until) {
			return found.value, true
		}
	}
	return value, false
}

// put keeps an answer; granted says of which kind it is.
func (c *cache[V]) put(key [sha256.Size]byte, value V, granted bool, life time.Duration) {
	if life <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.granted, key)
	delete(c.refused, key)
	s := c.refused
	if granted {
		s = c.granted
	}
	s.put(key, value, c.now(), life)
}

func (s shelf[V]) put(key [sha256.Size]byte, value V, now time.Time, life time.Duration) {
	if len(s) >= maxKept {
		maps.DeleteFunc(s, func(_ [sha256.Size]byte, k kept[V]) bool { return !now.Before(k.until) })
	}
	for old := range s {
		if len(s) < maxKept {
			break
		}
		delete(s, old)
	}
	s[key] = kept[V]{value, now.Add(life)}
}
