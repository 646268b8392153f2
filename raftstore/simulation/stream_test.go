package simulation

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// windowBytes is how much may be on its way in one direction of a connection before writers wait.
const windowBytes = 256 << 10

// stream is one direction of a connection, and keeps the contract of TCP: bytes arrive in order, once,
// late perhaps, or the connection breaks. What was sent before the sender closed, or died, still
// arrives: so a message that raft has given up and sent again on another connection can come a
// second time, and after newer ones.
type stream struct {
	link *link

	mu       sync.Mutex // guards everything below
	changed  *sync.Cond // on mu
	segments []segment
	bytes    int
	last     time.Time // when the newest segment arrives
	broken   error     // no more reads and writes
	reading  deadline
	writing  deadline
}

// segment is what one Write sent. Without data it is the end: with err nil for a clean one.
type segment struct {
	data []byte
	at   time.Time
	err  error
}

func newStream(l *link) *stream {
	s := &stream{link: l}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.broken != nil:
			return 0, s.broken
		case s.reading.passed():
			return 0, os.ErrDeadlineExceeded
		case s.arrived():
			return s.take(b)
		}
		s.changed.Wait()
	}
}

func (s *stream) arrived() bool {
	return len(s.segments) > 0 && !time.Now().Before(s.segments[0].at) && !s.link.isCut()
}

func (s *stream) take(b []byte) (int, error) {
	first := &s.segments[0]
	if len(first.data) == 0 {
		s.broken = first.err
		return 0, s.broken
	}
	n := copy(b, first.data)
	first.data = first.data[n:]
	s.bytes -= n
	if len(first.data) == 0 {
		s.segments = s.segments[1:]
	}
	s.changed.Broadcast()
	return n, nil
}

func (s *stream) write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.broken == nil && s.bytes >= windowBytes && !s.writing.passed() {
		s.changed.Wait()
	}
	if s.broken != nil {
		return 0, s.broken
	}
	if s.writing.passed() {
		return 0, os.ErrDeadlineExceeded
	}
	s.bytes += len(b)
	s.send(segment{data: append([]byte(nil), b...)})
	return len(b), nil
}

// send puts a segment on its way. The caller holds mu.
func (s *stream) send(g segment) {
	g.at = time.Now().Add(s.link.latency())
	if g.at.Before(s.last) {
		g.at = s.last
	}
	s.last = g.at
	s.segments = append(s.segments, g)
	time.AfterFunc(time.Until(g.at), s.wake)
}

func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// finish sends the end after what was sent: io.EOF, or a reset.
func (s *stream) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.send(segment{err: err})
	}
}

// cut breaks the stream at once, for both ends.
func (s *stream) cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = err
	}
	s.segments, s.bytes = nil, 0
	s.changed.Broadcast()
}

// deadline is when reads or writes of a stream end. Its stream's mu guards it.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (s *stream) setDeadline(d *deadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = t
	if !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), s.wake)
	}
	s.changed.Broadcast()
}

// conn is one end of a connection.
type conn struct {
	in, out *stream
	network *network
	owner   *port // whose end it is

	mu     sync.Mutex // guards closed
	closed bool
}

var _ net.Conn = (*conn)(nil)

func (c *conn) Read(b []byte) (int, error) { return c.in.read(b) }

func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	return c.out.write(b)
}

// Close ends this end. The other gets what is on its way, and then the end.
func (c *conn) Close() error {
	c.end(io.EOF)
	return nil
}

// end is Close, or with another error than io.EOF the death of the process at this end.
func (c *conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	c.network.forget(c)
	c.in.cut(net.ErrClosed)
	c.out.finish(err)
	c.out.setDeadline(&c.out.writing, time.Time{})
}

// reset breaks both ends at once.
func (c *conn) reset() {
	c.in.cut(syscall.ECONNRESET)
	c.out.cut(syscall.ECONNRESET)
}

func (c *conn) LocalAddr() net.Addr                { return address(c.out.link.from) }
func (c *conn) RemoteAddr() net.Addr               { return address(c.out.link.to) }
func (c *conn) SetReadDeadline(t time.Time) error  { c.in.setDeadline(&c.in.reading, t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.out.setDeadline(&c.out.writing, t); return nil }
func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

type address string

func (address) Network() string  { return "simulation" }
func (a address) String() string { return string(a) }
