package apiserver

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// arrival asks for the store's revision for many requests at once: whoever comes while it is being asked for waits for
// the next answer, which all of them share, since only that is of a time after they came.
type arrival struct {
	group sync.WaitGroup // of those who ask for others than themselves; close waits for them

	mu      sync.Mutex // guards what follows
	closed  bool
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

// close waits for what is being asked. Nobody is answered after it.
func (a *arrival) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.group.Wait()
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
	asked.revision, asked.err = carefully(ctx, ask)
	close(asked.done)
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.waiting
	a.now, a.waiting = next, nil
	switch {
	case next == nil:
	case a.closed:
		next.err = errStopping
		close(next.done)
		a.now = nil
	default:
		a.group.Go(func() { a.answer(ctx, next, ask) })
	}
}

// carefully asks. A panic is an error of those who wait for the answer: it must neither end the process, which it would in a
// goroutine, nor leave others waiting.
func carefully(ctx context.Context, ask func(context.Context) (int64, error)) (revision int64, err error) {
	limited, cancel := context.WithTimeout(ctx, arrivalTime)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", errPanic, cause)
		}
	}()
	return ask(limited)
}
