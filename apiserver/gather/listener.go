package gather

import (
	"context"
	"net"

	"kontiki/internal/lingering"
)

// Listener wraps the connections that another one accepts.
type Listener struct {
	net.Listener
	leaving lingering.Leaving
}

// Listen returns a listener whose connections gather. Who stops serving calls Drain.
func Listen(l net.Listener) *Listener { return &Listener{Listener: l} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c, &l.leaving), nil
}

// Drain waits until what was written to connections that are closed has gone out. When ctx ends, the rest is dropped.
// A process that ends takes the bytes with it that are in its own memory, not those that a socket has.
func (l *Listener) Drain(ctx context.Context) { l.leaving.Drain(ctx) }
