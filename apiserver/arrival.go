package apiserver

import (
	"context"
	"sync"
	"time"
)

// arrival asks for the store's revision for many requests at once: whoever comes while it is being asked for waits for
// the next answer, which all of them share, since only that is of a time after they came.
type arrival struct {
	mu      sync.Mutex // guards what follows
	now     *askedRevision
	waiting *askedRevision // asked for when now is answered
}

type askedRevision struct {
	done     chan struct{} // closed when the rest is set
	revision int64
	err      error
}

// arrivalTime bounds one look at the store, which is for others than the one who takes it.
const arrivalTime = 10 * time.Second

// revision is one that the store had after the call began.
func (a *arrival) revision(ctx context.Context, ask func(context.Context) (int64, error)) (int64, error) {
	mine, first := a.join()
	if first {
		a.answer(context.WithoutCancel(ctx), mine, ask)
	}
	select {
	case <-mine.done:
		return mine.revision, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// join finds the answer to wait for. Who is told to be first has to get it.
func (a *arrival) join() (mine *askedRevision, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fresh := func() *askedRevision { return &askedRevision{done: make(chan struct{})} }
	switch {
	case a.now == nil:
		a.now = fresh()
		return a.now, true
	case a.waiting == nil:
		a.waiting = fresh()
	}
	return a.waiting, false
}

// answer asks, and goes on to ask for those who came meanwhile in a goroutine, which ends when nobody waits any more.
func (a *arrival) answer(ctx context.Context, asked *askedRevision, ask func(context.Context) (int64, error)) {
	limited, cancel := context.WithTimeout(ctx, arrivalTime)
	asked.revision, asked.err = ask(limited)
	cancel()
	close(asked.done)
	a.mu.Lock()
	next := a.waiting
	a.now, a.waiting = next, nil
	a.mu.Unlock()
	if next != nil {
		go a.answer(ctx, next, ask)
	}
}
