package storage

import (
	"context"
	"sync"

	"kontiki/watch"
)

// turns lets updates of one object in this server take turns. Of several that start from the same version only one can
// succeed; the others would go through the raft log only to be told so. Instead each starts from what the one before it has
// made, which it is handed: the cache may not have it yet. What other servers write meanwhile is left to the
// condition of the transaction, as ever: this saves work and decides nothing.
type turns struct {
	mu    sync.Mutex // guards byKey, and the waiters in it
	byKey map[string]*turn
}

// turn is that of one key. It exists while somebody has it or waits for it.
type turn struct {
	taken   chan struct{} // of capacity one: full while somebody has the turn
	waiters int           // with the one who has it

	// What the last write in a turn made, and the revision of that. Guarded by having the turn.
	object   *watch.Object // nil: it was deleted
	revision int64         // 0: nothing has been written
}

// take waits for the turn of a key, in the order of asking, or for ctx.
func (t *turns) take(ctx context.Context, key string) (*turn, error) {
	t.mu.Lock()
	if t.byKey == nil {
		t.byKey = map[string]*turn{}
	}
	mine := t.byKey[key]
	if mine == nil {
		mine = &turn{taken: make(chan struct{}, 1)}
		t.byKey[key] = mine
	}
	mine.waiters++
	t.mu.Unlock()
	select {
	case mine.taken <- struct{}{}:
		return mine, nil
	case <-ctx.Done():
		t.leave(key, mine)
		return nil, ctx.Err()
	}
}

// pass gives the turn to the next one who waits.
func (t *turns) pass(key string, mine *turn) {
	<-mine.taken
	t.leave(key, mine)
}

func (t *turns) leave(key string, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.waiters--; mine.waiters == 0 {
		delete(t.byKey, key)
	}
}

// newest is the newer one of what the cache has, which is its state at revision, and what the turn has been handed.
func (t *turn) newest(cached *watch.Object, revision int64) *watch.Object {
	if t.revision > revision {
		return t.object
	}
	return cached
}

// wrote notes what a write has made of the object, for the next one.
func (t *turn) wrote(result Result) {
	t.object, t.revision = result.Object, result.Object.Revision
	if result.Deleted {
		t.object = nil
	}
}
