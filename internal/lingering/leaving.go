package lingering

import (
	"context"
	"net"
	"sync"
	"time"
)

// Leaving are the connections of a server that it has closed, and that have something left to do. The zero value is ready.
type Leaving struct {
	mu    sync.Mutex // guards what follows; nothing is locked under it
	conns map[net.Conn]struct{}
	empty chan struct{} // closed when conns is empty; nil while nobody waits for it
	over  bool          // Drain has waited long enough
}

// Add notes a connection, and says until when it may take.
func (l *Leaving) Add(c net.Conn, limit time.Duration) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		l.conns = map[net.Conn]struct{}{}
	}
	l.conns[c] = struct{}{}
	if l.over {
		return past
	}
	return time.Now().Add(limit)
}

// bound sets until when a connection may be read, and says whether it may be read at all.
func (l *Leaving) bound(c net.Conn, until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.over && c.SetReadDeadline(until) == nil
}

// Done notes that a connection has done what it had to.
func (l *Leaving) Done(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if len(l.conns) == 0 {
		l.signal()
	}
}

// Drain waits until all have done. When ctx ends, it ends what they still do.
func (l *Leaving) Drain(ctx context.Context) {
	select {
	case <-l.drained():
		return
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.over = true
	for c := range l.conns {
		_ = c.SetDeadline(past)
	}
	l.mu.Unlock()
	<-l.drained()
}

// drained returns a channel that is closed when there are none.
func (l *Leaving) drained() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.empty == nil {
		l.empty = make(chan struct{})
	}
	empty := l.empty
	if len(l.conns) == 0 {
		l.signal()
	}
	return empty
}

// signal tells who waits that there are none. l.mu is held.
func (l *Leaving) signal() {
	if l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
}
