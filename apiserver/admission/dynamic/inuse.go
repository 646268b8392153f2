package dynamic

import (
	"context"
	"sync"
	"sync/atomic"
)

// InUse holds what was made of the cluster's configuration, C, for requests that come from now on: a T. It is safe for
// concurrent use.
type InUse[C, T any] struct {
	load func(context.Context) (C, error)
	make func(C) *T

	mu  sync.Mutex // one make at a time
	now atomic.Pointer[T]
}

// NewInUse returns an InUse that has nothing yet. load reads all of the configuration, make makes use of it; make is
// called once at a time.
func NewInUse[C, T any](load func(context.Context) (C, error), make func(C) *T) *InUse[C, T] {
	return &InUse[C, T]{load: load, make: make}
}

// Set takes a configuration into use.
func (u *InUse[C, T]) Set(c C) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now.Store(u.make(c))
}

// Get returns what is in use. If nothing is yet, the configuration is read now: a request that comes before the first Set
// must not go past it. The error is that of reading.
func (u *InUse[C, T]) Get(ctx context.Context) (*T, error) {
	if now := u.now.Load(); now != nil {
		return now, nil
	}
	c, err := u.load(ctx)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now.Load() == nil { // else a Set has come in between, and may know more
		u.now.Store(u.make(c))
	}
	return u.now.Load(), nil
}
