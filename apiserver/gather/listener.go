package gather

import (
	"context"
	"net"
	"sync"
	"time"
)

// Listener wraps the connections that another one accepts.
type Listener struct {
	net.Listener

	mu      sync.Mutex // guards what follows; nothing is locked under it
	leaving map[*conn]struct{}
	empty   chan struct{} // closed when leaving is empty; nil while nobody waits for it
	over    bool          // Drain has waited long enough
}

// Listen returns a listener whose connections gather. Who stops serving calls Drain.
func Listen(l net.Listener) *Listener {
	return &Listener{Listener: l, leaving: map[*conn]struct{}{}}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c, l), nil
}

// Drain waits until what was written to connections that are closed has gone out. When ctx ends, the rest is dropped.
// A process that ends takes the bytes with it that are in its own memory, not those that a socket has.
func (l *Listener) Drain(ctx context.Context) {
	select {
	case <-l.drained():
		return
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.over = true
	for c := range l.leaving {
		_ = c.Conn.SetWriteDeadline(past) // its goroutine ends
	}
	l.mu.Unlock()
	<-l.drained()
}

// drained returns a channel that is closed when no connection is leaving.
func (l *Listener) drained() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.empty == nil {
		l.empty = make(chan struct{})
	}
	empty := l.empty
	if len(l.leaving) == 0 {
		l.signal()
	}
	return empty
}

// signal tells who waits that leaving is empty. l.mu is held.
func (l *Listener) signal() {
	if l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
}

// lingers notes a connection that is closed and still writes, and says until when it may.
func (l *Listener) lingers(c *conn) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving[c] = struct{}{}
	if l.over {
		return past
	}
	return time.Now().Add(lingerTime)
}

// gone notes that a closed connection writes no more.
func (l *Listener) gone(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leaving, c)
	if len(l.leaving) == 0 {
		l.signal()
	}
}
