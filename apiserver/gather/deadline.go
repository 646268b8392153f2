package gather

import (
	"net"
	"time"
)

// SetWriteDeadline sets until when Writes are taken. As on a connection that does not gather, it says nothing about
// what was taken before: crypto/tls sets one that is past when it closes, right behind the last bytes of the answer, and one
// of a few seconds before that.
func (c *conn) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.deadline = at
	left := time.Until(at)
	c.over = !at.IsZero() && left <= 0
	switch {
	case c.over:
		c.room.Broadcast()
	case at.IsZero():
		if c.timer != nil {
			c.timer.Stop()
		}
	case c.timer == nil:
		c.timer = time.AfterFunc(left, c.expire)
	default:
		c.timer.Reset(left)
	}
	return nil
}

// expire ends writing if the deadline is still the one that the timer was set for.
func (c *conn) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deadline.IsZero() && time.Until(c.deadline) <= 0 {
		c.over = true
		c.room.Broadcast()
	}
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed // who reads has been stopped
	}
	return c.Conn.SetReadDeadline(at)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(at time.Time) error {
	if err := c.SetReadDeadline(at); err != nil {
		return err
	}
	return c.SetWriteDeadline(at)
}
