package gather

import (
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"kontiki/internal/lingering"
)

const (
	// pendingBytes is how much may wait for the peer before a Write waits.
	pendingBytes = 64 << 10
	// lingerTime is how long what was written before a Close may take to go out. Somebody may read slowly, or be far away:
	// what a socket itself holds when it is closed the kernel sends for longer than this.
	lingerTime = 30 * time.Second
)

// past, as a deadline, ends what waits.
var past = time.Unix(1, 0)

// conn gathers what is written to a connection.
type conn struct {
	net.Conn
	leaving *lingering.Leaving

	mu      sync.Mutex // guards what follows
	room    sync.Cond  // signalled when pending becomes shorter, or err or over is set
	pending *[]byte    // to be written next; nil: nothing
	writing bool       // the goroutine that writes exists
	closed  bool
	err     error // why nothing more can be written

	// Until when Writes are taken; zero: always. timer looks at it then, and sets over.
	deadline time.Time
	timer    *time.Timer
	over     bool
}

func newConn(c net.Conn, leaving *lingering.Leaving) *conn {
	g := &conn{Conn: c, leaving: leaving}
	g.room.L = &g.mu
	return g
}

// Write leaves b to be written. It waits if too much is waiting already.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && !c.over && c.pending != nil && len(*c.pending) >= pendingBytes {
		c.room.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	if c.over {
		return 0, os.ErrDeadlineExceeded
	}
	if c.pending == nil {
		c.pending = newBuffer()
	}
	*c.pending = append(*c.pending, b...)
	if !c.writing {
		c.writing = true
		go c.write()
	}
	return len(b), nil
}

// write writes what is pending until there is no more.
func (c *conn) write() {
	for {
		runtime.Gosched() // who is about to write does so first
		batch := c.take()
		if batch == nil {
			return
		}
		_, err := c.Conn.Write(*batch)
		freeBuffer(batch)
		if err != nil {
			c.fail(err)
		}
	}
}

// take returns what is to be written. If that is nothing, the goroutine that writes ends.
func (c *conn) take() *[]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.pending
	c.pending = nil
	c.room.Broadcast()
	if batch == nil {
		c.writing = false
		if c.closed {
			_ = c.Conn.Close()
			c.leaving.Done(c.Conn)
		}
	}
	return batch
}

// fail lets later Writes fail, and drops what is pending.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.pending = nil
	c.room.Broadcast()
}

// Close ends the connection. Reads and writes fail from now on; the goroutine that writes, if there is one, closes
// what is below when it has done.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	if c.err == nil {
		c.err = net.ErrClosed
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.room.Broadcast()
	if !c.writing {
		return c.Conn.Close()
	}
	_ = c.Conn.SetReadDeadline(past) // who reads stops
	return c.Conn.SetWriteDeadline(c.leaving.Add(c.Conn, lingerTime))
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && c.isClosed() {
		return n, net.ErrClosed
	}
	return n, err
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// buffers are used again by all connections: one that is quiet has none.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func newBuffer() *[]byte { return buffers.Get().(*[]byte) }

func freeBuffer(b *[]byte) {
	if cap(*b) > 2*pendingBytes { // of a single large Write
		return
	}
	*b = (*b)[:0]
	buffers.Put(b)
}
