package raftstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// downtime is how long the others have no leader after fail was done to theirs, in the bubble's time.
func downtime(t *testing.T, fail func(c *cluster, leader string)) time.Duration {
	var d time.Duration
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		time.Sleep(5 * time.Second)
		old := c.leader(names...)
		began := time.Now()
		fail(c, old.cfg.NodeID)
		others := c.others(old)
		require.NoError(t, c.members[c.leader(others...).cfg.NodeID].WaitReady(t.Context()))
		d = time.Since(began)
		for _, name := range others {
			require.Eventually(t, func() bool {
				return c.members[name].raft.ReloadableConfig().HeartbeatTimeout == heartbeatTimeout
			}, 10*time.Second, 100*time.Millisecond, "the short timeout was for one election")
		}
	})
	return d
}

// The death of a leader's process is seen at once; a silence has to last for the heartbeat timeout.
func TestDeadLeaderIsReplacedEarly(t *testing.T) {
	for range 5 {
		dead := downtime(t, func(c *cluster, leader string) { c.network.Crash(leader) })
		require.Less(t, dead, heartbeatTimeout, "the bubble's time")
		require.Greater(t, dead, leaderLeaseTimeout/2)
		silent := downtime(t, func(c *cluster, leader string) { c.network.Partition([]string{leader}) })
		require.Greater(t, silent, dead)
		require.Greater(t, silent, heartbeatTimeout-2*heartbeatTimeout/10)
	}
}

// A follower whose connections break, and to whom the leader's address is refused, stays one as long as it hears the leader.
func TestRefusalAloneMovesNobody(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		old := c.leader(names...)
		term := old.raft.CurrentTerm()
		for _, name := range c.others(old) {
			m := c.members[name]
			m.campaignAfter(t.Context(), old.raftID())
			require.Equal(t, heartbeatTimeout, m.raft.ReloadableConfig().HeartbeatTimeout)
		}
		time.Sleep(5 * time.Second)
		require.Same(t, old, c.leader(names...))
		require.Equal(t, term, old.raft.CurrentTerm())
	})
}
