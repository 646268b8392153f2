package raftstore

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// muteNetwork is a Network on which the member can be muted: it hears the others, and they do not hear it.
type muteNetwork struct {
	Network
	muted atomic.Bool
}

func (n *muteNetwork) Accept() (net.Conn, error) {
	c, err := n.Network.Accept()
	return &muteConn{Conn: c, network: n}, err
}

func (n *muteNetwork) Dial(address string, timeout time.Duration) (net.Conn, error) {
	c, err := n.Network.Dial(address, timeout)
	return &muteConn{Conn: c, network: n}, err
}

// muteConn breaks when it should say something again after it has lost something.
type muteConn struct {
	net.Conn
	network *muteNetwork
	lost    atomic.Bool
}

func (c *muteConn) Write(b []byte) (int, error) {
	if c.network.muted.Load() {
		c.lost.Store(true)
		return len(b), nil
	}
	if c.lost.Load() {
		return 0, errors.Join(net.ErrClosed, c.Close())
	}
	return c.Conn.Write(b)
}

// TestRequestsToADeposedLeaderEnd: who waits for a leader that says nothing any more hears of it when there is
// another, not when its own time is up.
func TestRequestsToADeposedLeaderEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		networks := map[string]*muteNetwork{}
		c := newCluster(t, dir, func(cfg *Config) {
			n := &muteNetwork{Network: cfg.Network}
			networks[cfg.NodeID], cfg.Network, cfg.RequestTimeout = n, n, time.Minute
		})
		defer c.close()
		old := c.leader(names...)
		other := c.members[c.others(old)[0]]
		_, err := other.Txn(t.Context(), putTxn("k", "0")) // there is a connection now
		require.NoError(t, err)

		networks[old.cfg.NodeID].muted.Store(true)
		began := time.Now()
		written, read := make(chan error, 1), make(chan error, 1)
		go func() { _, err := other.Txn(t.Context(), putTxn("k", "1")); written <- err }()
		go func() { _, err := other.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")}); read <- err }()
		require.ErrorIs(t, <-written, ErrUnknownOutcome)
		require.NoError(t, <-read, "a read is asked again, of the new leader")
		require.Less(t, time.Since(began), 10*time.Second)
		require.NotEqual(t, old, c.leader(c.others(old)...))
		networks[old.cfg.NodeID].muted.Store(false)
		c.same()
	})
}
