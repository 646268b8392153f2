package raftstore

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// The first byte of a connection says what it carries.
const (
	streamRaft    = 'R' // hashicorp/raft's network transport
	streamForward = 'F' // requests to the leader, see frame.go
)

const helloTimeout = 5 * time.Second

// mux shares a member's Network between raft and forwarded requests.
type mux struct {
	network Network
	raft    chan net.Conn        // unbuffered; a connection waits until raft accepts it or the mux is closed
	admit   func(net.Conn) error // decides about a connection for raft
	forward func(net.Conn)
	stop    chan struct{}
	// raftEnded gets a value (there is room for one) when a connection that brought raft's messages has ended.
	raftEnded chan struct{}
	group     sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[*trackedConn]struct{}
}

// newMux accepts connections until close. Those that carry raft's messages it keeps if admit returns nil. It
// calls forward, in a goroutine of its own, for each connection that carries requests.
func newMux(n Network, admit func(net.Conn) error, forward func(net.Conn)) *mux {
	m := &mux{network: n, raft: make(chan net.Conn), admit: admit, forward: forward, stop: make(chan struct{}), raftEnded: make(chan struct{}, 1), conns: map[*trackedConn]struct{}{}}
	m.group.Go(m.accept)
	return m
}

// close ends accepting, and all connections.
func (m *mux) close() error {
	m.mu.Lock()
	close(m.stop) // track adds nothing from here on
	open := slices.Collect(maps.Keys(m.conns))
	m.mu.Unlock()
	err := m.network.Close()
	for _, c := range open {
		_ = c.Close() // whoever uses it gets an error; this one would be about the same
	}
	m.group.Wait()
	return err
}

func (m *mux) accept() {
	for {
		conn, err := m.network.Accept()
		if err != nil {
			select {
			case <-m.stop:
				return
			case <-time.After(10 * time.Millisecond): // out of file descriptors, for instance
				continue
			}
		}
		if conn, err = m.track(conn); err == nil {
			m.group.Go(func() { m.dispatch(conn) })
		}
	}
}

// track lets close find a connection until it is closed; it refuses once the mux is closed itself.
func (m *mux) track(conn net.Conn) (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.stop:
		return nil, errors.Join(net.ErrClosed, conn.Close())
	default:
		t := &trackedConn{Conn: conn, mux: m}
		m.conns[t] = struct{}{}
		return t, nil
	}
}

// trackedConn is a connection that its mux closes, if nobody does so before.
type trackedConn struct {
	net.Conn
	mux *mux
}

func (c *trackedConn) Close() error {
	c.mux.mu.Lock()
	delete(c.mux.conns, c)
	c.mux.mu.Unlock()
	return c.Conn.Close()
}

// raftConn is a connection that brings raft's messages from another member.
type raftConn struct {
	net.Conn
	ended chan<- struct{}
}

func (c *raftConn) Close() error {
	select {
	case c.ended <- struct{}{}:
	default: // whoever looks has not looked yet
	}
	return c.Conn.Close()
}

// dispatch finds out what a connection carries and hands it over.
func (m *mux) dispatch(conn net.Conn) {
	var hello [1]byte
	_ = conn.SetReadDeadline(time.Now().Add(helloTimeout)) // if it fails, so will the read
	if _, err := conn.Read(hello[:]); err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	switch hello[0] {
	case streamRaft:
		if m.admit(conn) != nil {
			_ = conn.Close()
			return
		}
		select {
		case m.raft <- &raftConn{conn, m.raftEnded}:
		case <-m.stop:
			_ = conn.Close()
		}
	case streamForward:
		m.forward(conn)
		_ = conn.Close()
	default:
		_ = conn.Close()
	}
}

// dial opens a connection of a kind.
func (m *mux) dial(kind byte, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := m.network.Dial(address, timeout)
	if err != nil {
		return nil, err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(timeout))
	if _, err := conn.Write([]byte{kind}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_ = conn.SetWriteDeadline(time.Time{})
	return m.track(conn)
}
