package shim

import (
	"net"
	"sync"
	"time"
)

// clients are the attached connections. Output reaches all of them or, when one does not
// read for writeTimeout, all but that one: a stuck viewer must not stop the container.
type clients struct {
	mu    sync.Mutex // guards conns and frame; taken alone
	conns map[net.Conn]bool
	frame []byte
}

const writeTimeout = 10 * time.Second

func (c *clients) add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		c.conns = map[net.Conn]bool{}
	}
	c.conns[conn] = true
}

func (c *clients) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

func (c *clients) write(stream byte, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) == 0 {
		return
	}
	c.frame = appendFrame(c.frame[:0], stream, p)
	for conn := range c.conns {
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := conn.Write(c.frame); err != nil {
			conn.Close()
			delete(c.conns, conn)
		}
	}
}
