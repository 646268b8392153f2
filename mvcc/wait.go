package mvcc

import "context"

// waiters are callers that wait until an index was applied. It is guarded by Store.mu.
type waiters struct {
	list []waiter
}

type waiter struct {
	index uint64
	done  chan struct{}
}

// wake lets those go on whose index was reached.
func (w *waiters) wake(applied uint64) {
	kept := w.list[:0]
	for _, x := range w.list {
		if x.index <= applied {
			close(x.done)
			continue
		}
		kept = append(kept, x)
	}
	clear(w.list[len(kept):])
	w.list = kept
}

func (w *waiters) closeAll() { w.wake(^uint64(0)) }

// WaitApplied waits until the command of a raft index was applied, here.
func (s *Store) WaitApplied(ctx context.Context, index uint64) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	if s.meta.applied >= index {
		s.mu.Unlock()
		return nil
	}
	w := waiter{index: index, done: make(chan struct{})}
	s.waiters.list = append(s.waiters.list, w)
	s.mu.Unlock()
	select {
	case <-w.done:
		return s.checkOpen()
	case <-ctx.Done():
		s.forget(w)
		return ctx.Err()
	}
}

// forget takes a waiter that gave up off the list.
func (s *Store) forget(w waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.waiters.list {
		if x.done == w.done {
			s.waiters.list = append(s.waiters.list[:i], s.waiters.list[i+1:]...)
			return
		}
	}
}

func (s *Store) checkOpen() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	return nil
}
