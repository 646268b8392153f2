package raftstore

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// slowDisk makes each write take as long as it is told.
type slowDisk struct {
	mu   sync.Mutex // guards wait
	wait time.Duration
}

func (d *slowDisk) write(f func() error) error {
	d.mu.Lock()
	wait := d.wait
	d.mu.Unlock()
	time.Sleep(wait)
	return f()
}

func (d *slowDisk) takes(wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait = wait
}

// TestSlowDisksElectNobody: writes that take far longer than the leader's patience with silence do not end its term.
func TestSlowDisksElectNobody(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var disk slowDisk // of all
		c := newCluster(t, dir, func(c *Config) { c.OnDisk, c.RequestTimeout = disk.write, time.Minute })
		defer c.close()
		leader := c.leader(names...)
		term := leader.raft.CurrentTerm()
		disk.takes(3 * time.Second)
		for i := range 10 {
			_, err := c.members[names[i%3]].Txn(t.Context(), putTxn("k", "v"))
			require.NoError(t, err)
		}
		disk.takes(0)
		c.same()
		for _, m := range c.members {
			require.Equal(t, term, m.raft.CurrentTerm())
		}
	})
}

// TestHeartbeatBesideTheDisk: while raft waits for the disk, a heartbeat of its term is answered, and one of the next
// term is not, nor does it change anything: that would be hashicorp/raft issue 695.
func TestHeartbeatBesideTheDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*slowDisk{"a": {}, "b": {}, "c": {}}
		c := newCluster(t, dir, func(c *Config) { c.OnDisk = disks[c.NodeID].write })
		defer c.close()
		leader := c.leader(names...)
		follower := c.members[c.others(leader)[0]]
		term := leader.raft.CurrentTerm()
		began := time.Now()
		const wait = 5 * time.Second
		disks[follower.cfg.NodeID].takes(wait)
		_, err := leader.Txn(t.Context(), putTxn("k", "v"))
		require.NoError(t, err)

		time.Sleep(100 * time.Millisecond) // virtual; the entry comes to the follower
		ask := func(term uint64) (raft.AppendEntriesResponse, time.Duration) {
			heartbeat := &raft.AppendEntriesRequest{Term: term, RPCHeader: raft.RPCHeader{
				ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(leader.cfg.NodeID), Addr: []byte(leader.cfg.NodeID),
			}}
			var answer raft.AppendEntriesResponse
			id := follower.cfg.NodeID
			require.NoError(t, leader.transport.AppendEntries(raft.ServerID(id), raft.ServerAddress(id), heartbeat, &answer))
			return answer, time.Since(began)
		}
		answer, after := ask(term)
		require.True(t, answer.Success)
		require.Less(t, after, time.Second)

		disks[follower.cfg.NodeID].takes(0) // from the next write on
		answer, after = ask(term + 1)
		require.GreaterOrEqual(t, after, wait)
		require.Equal(t, term+1, answer.Term)
	})
}
