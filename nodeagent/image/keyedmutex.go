package image

import "sync"

// keyedMutex is a mutex per key: two pulls of one image wait for each other, so that the
// second finds every layer already there.
type keyedMutex struct {
	mu    sync.Mutex // guards locks
	locks map[string]*waiters
}

type waiters struct {
	sync.Mutex
	n int // holders and waiters; guarded by keyedMutex.mu
}

// lock takes the mutex of key and returns what releases it.
func (k *keyedMutex) lock(key string) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*waiters{}
	}
	w := k.locks[key]
	if w == nil {
		w = &waiters{}
		k.locks[key] = w
	}
	w.n++
	k.mu.Unlock()
	w.Lock()
	return func() {
		w.Unlock()
		k.mu.Lock()
		if w.n--; w.n == 0 {
			delete(k.locks, key)
		}
		k.mu.Unlock()
	}
}
