package lingering

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// lingerTime is how long a peer may go on sending that has been told the end.
const lingerTime = 5 * time.Second

// past, as a deadline, ends what waits.
var past = time.Unix(1, 0)

// Listener wraps the connections that another one accepts.
type Listener struct {
	net.Listener
	leaving Leaving
}

// Listen returns a listener whose connections linger. It stands below TLS. Who stops serving calls Drain.
func Listen(l net.Listener) *Listener { return &Listener{Listener: l} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if half, ok := c.(halfCloser); ok {
		return &conn{halfCloser: half, leaving: &l.leaving}, nil
	}
	return c, nil
}

// Drain waits for the peers of connections that are closed, until ctx ends.
func (l *Listener) Drain(ctx context.Context) { l.leaving.Drain(ctx) }

// halfCloser is a connection that can be ended one way: TCP and Unix sockets.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

type conn struct {
	halfCloser
	leaving *Leaving
	closed  atomic.Bool
	ended   atomic.Bool // nothing more comes from the peer

	reading sync.Mutex // held while somebody reads
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := c.halfCloser.Read(b)
	if err == nil {
		return n, nil
	}
	if c.closed.Load() {
		return n, net.ErrClosed
	}
	if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
		c.ended.Store(true)
	}
	return n, err
}

// Close ends the connection.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	if c.ended.Load() {
		return c.halfCloser.Close()
	}
	_ = c.SetWriteDeadline(past) // who writes stops
	if err := c.CloseWrite(); err != nil {
		_ = c.halfCloser.Close() // the peer has reset it
		return nil
	}
	until := c.leaving.Add(c.halfCloser, lingerTime)
	_ = c.halfCloser.SetReadDeadline(past) // who reads stops
	go c.linger(until)
	return nil
}

// linger reads until the peer ends.
func (c *conn) linger(until time.Time) {
	defer c.leaving.Done(c.halfCloser)
	defer c.halfCloser.Close()
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.leaving.bound(c.halfCloser, until) {
		_, _ = io.Copy(io.Discard, c.halfCloser)
	}
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(at time.Time) error {
	if c.closed.Load() {
		return net.ErrClosed // a later deadline would hold up Close
	}
	return c.halfCloser.SetReadDeadline(at)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(at time.Time) error {
	if err := c.SetReadDeadline(at); err != nil {
		return err
	}
	return c.SetWriteDeadline(at)
}
