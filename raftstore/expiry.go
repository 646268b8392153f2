package raftstore

import (
	"sync"
	"sync/atomic"
	"time"
)

// expiry tells calls that their time is up. A timer for each would cost more than it is worth, since a proposal is
// answered within milliseconds. So calls that begin within the same twentieth of the timeout share one, and may take
// that much longer.
type expiry struct {
	timeout time.Duration
	newest  atomic.Pointer[expiryTimer]
	mu      sync.Mutex // held by who makes a timer
}

// expiryTimer is the timer of the calls that began within some time after it was made.
type expiryTimer struct {
	made time.Time
	over chan struct{} // closed when their time is up
}

// expirySharing is the part of the timeout in which calls share a timer.
const expirySharing = 20

// next is closed when the time of a call that begins now is up.
func (x *expiry) next() <-chan struct{} {
	now := time.Now()
	if t := x.newest.Load(); t.serves(now, x.timeout) {
		return t.over
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.newest.Load()
	if !t.serves(now, x.timeout) {
		t = &expiryTimer{made: now, over: make(chan struct{})}
		time.AfterFunc(x.timeout+x.timeout/expirySharing, func() { close(t.over) })
		x.newest.Store(t)
	}
	return t.over
}

func (t *expiryTimer) serves(now time.Time, timeout time.Duration) bool {
	return t != nil && now.Sub(t.made) < timeout/expirySharing
}
