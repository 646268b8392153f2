package raftstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A second transfer to a member that does not answer would never end, and nor would the refusal of proposals; the
// bubble would end with goroutines that wait for ever.
func TestSecondTransferToSilentMember(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		leader := c.leader(names...)
		silent, other := c.others(leader)[0], c.others(leader)[1]
		c.network.Partition([]string{silent})
		for range 2 {
			require.ErrorIs(t, leader.MoveLeader(t.Context(), silent), ErrTransferFailed)
		}
		require.NoError(t, leader.MoveLeader(t.Context(), other), "another target has a channel of its own")
		require.Eventually(t, func() bool { return c.leader(leader.cfg.NodeID, other).cfg.NodeID == other }, time.Minute, 10*time.Millisecond)
		c.network.Heal()
	})
}

func TestTransfersOfATerm(t *testing.T) {
	var s transfers
	require.False(t, s.mayHang(1, "a"))
	s.hasFailed(1, "a")
	require.True(t, s.mayHang(1, "a"))
	require.True(t, s.mayHang(1, anyTarget), "it may be a that raft chooses")
	require.False(t, s.mayHang(1, "b"))
	require.False(t, s.mayHang(2, "a"))
	s.hasFailed(2, anyTarget)
	require.True(t, s.mayHang(2, "b"), "it may have been b that raft chose")
	require.False(t, s.mayHang(1, "a"))
}
