package storage

import (
	"context"
	"slices"
	"sync"
	"time"

	"kontiki/watch"
)

// turns lets updates of one object in this server take turns. Of several that start from the same version only one can
// succeed; the others would go through the raft log only to be told so. Instead each starts from what the one before it has
// made, which it is handed: the cache may not have it yet. What other servers write meanwhile is left to the
// condition of the transaction, as ever: this saves work and decides nothing.
//
// An update that is for a version which is no longer the newest is lost before its turn. Whoever sent it will read the
// object and try again; if all that lost did so at once, all but one would lose once more, and sixteen clients would make
// thirty-two requests for each of them that gets on. So one of them is told at a time, and the next one when
// somebody has written the object, or has had the time for it:
//
//	write 7 ─┬─ A is told; A reads 7 and writes 8 ─┬─ B is told; B reads 8 …
//	         └─ B, C, D wait                       └─ C, D wait
type turns struct {
	mu    sync.Mutex // guards byKey, and all in it but what a turn's comment says
	byKey map[string]*turn
}

// headStart is how long who has lost has to try again before the next one is told. It is a few times what a client
// on the same network needs for a read and a write.
const headStart = 2 * time.Millisecond

// patience is how long an update waits for its turn. Who has it may be asking a webhook, for seconds, or one that wants to
// write the same object: then the others go on beside it, as they would in another server.
const patience = 250 * time.Millisecond

// turn is that of one key. It exists while somebody has it or waits for it.
type turn struct {
	taken   bool
	waiting []*waiter   // in the order of asking
	told    bool        // somebody who has lost was told since the last write
	toldAt  time.Time   // when the last one was
	alarm   *time.Timer // rings when the next one may be told; nil if not set

	// What the last write in a turn made, and the revision of that. Written by who has the turn, with mu.
	object   *watch.Object // nil: it was deleted
	revision int64         // 0: nothing has been written
}

// waiter waits for a turn.
type waiter struct {
	from    int64         // the version that its change is for; 0: any
	granted chan struct{} // closed with the turn
}

// lost says that a waiter comes too late.
func (t *turn) lost(w *waiter) bool { return w.from != 0 && w.from < t.revision }

// take waits for the turn of a key, or for ctx. After a while it goes on without: what it returns then is nobody's turn.
// from is the revision that the change is for, 0 if it is for any.
func (t *turns) take(ctx context.Context, key string, from int64) (*turn, error) {
	mine, w := t.enter(key, from)
	select {
	case <-w.granted:
		return mine, nil
	default:
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case <-w.granted:
		return mine, nil
	case <-enough.C:
		t.giveUp(key, mine, w)
		return &turn{}, nil
	case <-ctx.Done():
		t.giveUp(key, mine, w)
		return nil, ctx.Err()
	}
}

func (t *turns) enter(key string, from int64) (*turn, *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey == nil {
		t.byKey = map[string]*turn{}
	}
	mine := t.byKey[key]
	if mine == nil {
		mine = &turn{}
		t.byKey[key] = mine
	}
	w := &waiter{from: from, granted: make(chan struct{})}
	mine.waiting = append(mine.waiting, w)
	t.next(key, mine)
	return mine, w
}

// giveUp takes back the wish for a turn, which may just have been granted.
func (t *turns) giveUp(key string, mine *turn, w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(mine.waiting, w); i >= 0 {
		mine.waiting = slices.Delete(mine.waiting, i, i+1)
	} else {
		mine.taken = false
	}
	t.next(key, mine)
}

// pass gives the turn to the next one. Nobody's turn is passed to nobody.
func (t *turns) pass(key string, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !mine.taken {
		return
	}
	mine.taken = false
	t.next(key, mine)
}

// next grants the turn, if nobody has it, to who may have it. t.mu is held.
func (t *turns) next(key string, mine *turn) {
	if mine.taken {
		return
	}
	if len(mine.waiting) == 0 {
		mine.stopAlarm()
		delete(t.byKey, key)
		return
	}
	i := slices.IndexFunc(mine.waiting, mine.lost)
	if i >= 0 && mine.mayTell() { // who has lost is done at once
		mine.told, mine.toldAt = true, time.Now()
	} else if i = slices.IndexFunc(mine.waiting, func(w *waiter) bool { return !mine.lost(w) }); i < 0 {
		t.setAlarm(key, mine)
		return
	}
	w := mine.waiting[i]
	mine.waiting = slices.Delete(mine.waiting, i, i+1)
	mine.taken = true
	close(w.granted)
}

// mayTell says whether the next one who has lost may be told.
func (t *turn) mayTell() bool { return !t.told || time.Since(t.toldAt) >= headStart }

// setAlarm has next called when mayTell becomes true. t.mu is held.
func (t *turns) setAlarm(key string, mine *turn) {
	if mine.alarm != nil {
		return
	}
	mine.alarm = time.AfterFunc(headStart-time.Since(mine.toldAt), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		mine.alarm = nil
		if t.byKey[key] == mine {
			t.next(key, mine)
		}
	})
}

// stopAlarm: the alarm may ring all the same, for nobody.
func (t *turn) stopAlarm() {
	if t.alarm != nil {
		t.alarm.Stop()
		t.alarm = nil
	}
}

// newest is the newer one of what the cache has, which is its state at revision, and what the turn has been handed.
func (t *turn) newest(cached *watch.Object, revision int64) *watch.Object {
	if t.revision > revision {
		return t.object
	}
	return cached
}

// wrote notes what a write has made of the object, for the next one. The caller has the turn.
func (t *turns) wrote(mine *turn, result Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine.object, mine.revision, mine.told = result.Object, result.Object.Revision, false
	if result.Deleted {
		mine.object = nil
	}
}
