package raftstore

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// transportTimeout bounds one message of raft's; snapshots get more, by their size.
	transportTimeout = 5 * time.Second
	transportPool    = 3 // idle connections kept per peer
)

// transport is raft's network transport without raft's fast path for heartbeats, and with answers that wait until the
// leader has its own entries on disk (answers.go).
//
// Raft lets a transport handle heartbeats on its own goroutine, so that they do not wait while the
// main loop writes to the log. But the handler is the code of the main loop, and the two race: a
// heartbeat of a new leader can raise the term between the check of an old leader's entries and their
// being written, and logs diverge (hashicorp/raft issue 695, open in 1.8.0). The interface permits to
// ignore raft's handler. In its place stands one of ours (votes.go) that hands heartbeats to the main loop like everything
// else; only while that waits for a slow disk it answers those that change nothing (heartbeats.go).
//
// The embedded transport still offers pre-vote (raft.WithPreVote).
type transport struct {
	*raft.NetworkTransport
	sending *sending
	written written  // nil in tests of the transport alone
	commits *commits // nil in those, too
}

var _ raft.WithPreVote = transport{}

// SetHeartbeatHandler implements raft.Transport, by ignoring raft's handler.
func (transport) SetHeartbeatHandler(func(raft.RPC)) {}

func newTransport(m *mux, c Config, w written, news *commits) transport {
	network := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  &raftStream{mux: m, closed: make(chan struct{})},
		MaxPool: transportPool,
		Timeout: transportTimeout,
		Logger:  raftLogger(c.Log),
	})
	return transport{NetworkTransport: network, sending: &sending{meter: newSnapshotMeter()}, written: w, commits: news}
}

// raftStream is raft's share of a mux.
type raftStream struct {
	mux    *mux
	once   sync.Once
	closed chan struct{}
}

var _ raft.StreamLayer = (*raftStream)(nil)

// Accept implements net.Listener.
func (s *raftStream) Accept() (net.Conn, error) {
	select {
	case c := <-s.mux.raft:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *raftStream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (s *raftStream) Addr() net.Addr { return address(s.mux.network.Address()) }

// Dial implements raft.StreamLayer.
func (s *raftStream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.mux.dial(streamRaft, string(to), timeout)
}

// address is a net.Addr that is what the member advertises.
type address string

func (address) Network() string  { return "kontiki" }
func (a address) String() string { return string(a) }
