package raftstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// disks are Config.OnDisk for members, by name: each can be held, or refuse one write. (Raft panics when it cannot write
// its term, so not more than the one that is meant.)
type disks map[string]*testDisk

type testDisk struct {
	held atomic.Pointer[chan struct{}] // a write waits until it is closed
	full atomic.Bool                   // the next write fails
}

var errDiskFull = errors.New("disk full")

func newDisks() disks {
	d := disks{}
	for _, name := range names {
		d[name] = &testDisk{}
	}
	return d
}

func (d disks) tune(cfg *Config) {
	disk := d[cfg.NodeID]
	cfg.OnDisk = func(write func() error) error {
		if held := disk.held.Load(); held != nil {
			<-*held
		}
		if disk.full.CompareAndSwap(true, false) {
			return errDiskFull
		}
		return write()
	}
}

// hold lets no write through until the function that it returns is called.
func (d *testDisk) hold() (release func()) {
	held := make(chan struct{})
	d.held.Store(&held)
	return func() { d.held.Store(nil); close(held) }
}

// TestLeaderWritesBeside: the followers have an entry before the leader has written it, but it is not committed, nor
// acknowledged, before it has (package leaderlog).
func TestLeaderWritesBeside(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disks := newDisks()
		c := newCluster(t, dir, disks.tune)
		defer c.close()
		leader := c.leader(names...)
		_, err := leader.Txn(t.Context(), putTxn("k", "0"))
		require.NoError(t, err)
		before, err := leader.log.LastIndex()
		require.NoError(t, err)

		release := disks[leader.cfg.NodeID].hold()
		done := make(chan error, 1)
		go func() { _, err := leader.Txn(t.Context(), putTxn("k", "1")); done <- err }()
		time.Sleep(300 * time.Millisecond)
		require.Equal(t, before+1, leader.raft.LastIndex(), "as raft sees it")
		last, err := leader.log.LastIndex()
		require.NoError(t, err)
		require.Equal(t, before, last, "on the leader's disk")
		for _, name := range c.others(leader) {
			last, err := c.members[name].log.LastIndex()
			require.NoError(t, err)
			require.Equal(t, before+1, last, "on the disk of %s", name)
		}
		require.Empty(t, done, "acknowledged")
		require.Equal(t, before, leader.raft.CommitIndex())

		release()
		require.NoError(t, <-done)
		require.Equal(t, before+1, leader.raft.CommitIndex())
		c.same()
	})
}

// TestLeaderDiskFull: a leader that cannot write what it has sent already makes room for another (itself perhaps, since it can
// write again), and has what the others have. The write is not acknowledged; with the other two it may happen.
func TestLeaderDiskFull(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disks := newDisks()
		c := newCluster(t, dir, disks.tune)
		defer c.close()
		old := c.leader(names...)
		term := old.raft.CurrentTerm()
		disks[old.cfg.NodeID].full.Store(true)
		_, err := old.Txn(t.Context(), putTxn("k", "1"))
		require.ErrorIs(t, err, ErrUnknownOutcome)
		require.Equal(t, raft.Follower, old.raft.State(), "it steps down")
		require.Equal(t, term, old.raft.CurrentTerm(), "and not because of another")

		other := c.members[c.others(old)[0]]
		res, err := other.Txn(t.Context(), putTxn("l", "2"))
		require.NoError(t, err)
		require.Greater(t, other.raft.CurrentTerm(), term)

		require.False(t, disks[old.cfg.NodeID].full.Load())
		require.NoError(t, old.WaitReady(t.Context()))
		got, err := old.Range(t.Context(), mvcc.RangeRequest{Key: []byte("l")})
		require.NoError(t, err)
		require.Equal(t, res.Revision, got.KVs[0].ModRevision)
		c.same()
	})
}

// TestDeposedLeaderWithTail: a leader that is cut off with entries that it has neither written nor got committed
// is deposed while its disk is stuck; then it comes back, and has what the others have.
func TestDeposedLeaderWithTail(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disks := newDisks()
		c := newCluster(t, dir, disks.tune)
		defer c.close()
		old := c.leader(names...)
		c.network.Partition([]string{old.cfg.NodeID})
		release := disks[old.cfg.NodeID].hold()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := old.Txn(ctx, putTxn("k", "lost"))
		require.ErrorIs(t, err, ErrUnknownOutcome)

		other := c.leader(c.others(old)...)
		_, err = other.Txn(t.Context(), putTxn("k", "kept"))
		require.NoError(t, err)
		c.network.Heal()
		time.Sleep(2 * time.Second)
		release()
		require.NoError(t, old.WaitReady(t.Context()))
		got, err := old.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
		require.NoError(t, err)
		require.Equal(t, "kept", string(got.KVs[0].Value))
		require.EqualValues(t, 1, got.KVs[0].Version)
		c.same()
	})
}
