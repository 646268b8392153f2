package raftstore

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// TestEmptyDiskDoesNotVote: a and b acknowledge a write that c does not have; a is cut off, b's disk is lost.
// With the vote of the member that begins anew at b's address, c would win an election without the write.
func TestEmptyDiskDoesNotVote(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		a := c.leader(names...)
		lost, behind := c.others(a)[0], c.members[c.others(a)[1]]
		c.network.Partition([]string{behind.cfg.NodeID})
		_, err := a.Txn(t.Context(), putTxn("k", "acknowledged"))
		require.NoError(t, err)

		c.stop(lost)
		c.network.Partition([]string{a.cfg.NodeID})
		anew := openMember(t, Config{
			Dir: filepath.Join(dir, "anew"), NodeID: "anew", Network: c.network.Join(lost), Log: quiet(),
			Join: []string{a.cfg.NodeID, behind.cfg.NodeID},
		})
		c.members["anew"] = anew
		defer func() { require.NoError(t, anew.Close()) }()
		time.Sleep(20 * time.Second)
		require.NotEqual(t, raft.Leader, behind.raft.State())

		c.network.Heal()
		c.ready()
		got, err := behind.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
		require.NoError(t, err)
		require.Len(t, got.KVs, 1)
		for range 100 { // it joins, in the place of the one that was lost, and gets its vote
			if s, ok := serverByID(behind.servers(), "anew"); ok && s.Suffrage == raft.Voter {
				require.Len(t, behind.servers(), 3)
				return
			}
			time.Sleep(time.Second)
		}
		t.Fatal("it did not join")
	})
}

// TestVoteForMemberThatWasPromotedMeanwhile: c loses its vote and gets it back while b is away; then a is lost. b, which takes c for a
// learner, and c are a majority, and only c has all that was acknowledged.
func TestVoteForMemberThatWasPromotedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cl := newCluster(t, dir, nil)
		defer cl.close()
		a := cl.leader(names...)
		b, c := cl.members[cl.others(a)[0]], cl.members[cl.others(a)[1]]
		suffrage := func(m *Member) raft.ServerSuffrage {
			s, _ := serverByID(m.servers(), c.cfg.NodeID)
			return s.Suffrage
		}
		require.NoError(t, a.DemoteMember(t.Context(), c.cfg.NodeID))
		require.Eventually(t, func() bool { return suffrage(b) == raft.Nonvoter }, time.Minute, 10*time.Millisecond)
		cl.network.Partition([]string{b.cfg.NodeID})
		require.NoError(t, a.raft.AddVoter(c.raftID(), raft.ServerAddress(c.cfg.NodeID), 0, 0).Error(), "a and c are a majority with c's vote")
		_, err := a.Txn(t.Context(), putTxn("k", "acknowledged"))
		require.NoError(t, err)
		require.Equal(t, raft.Nonvoter, suffrage(b))

		cl.network.Partition([]string{a.cfg.NodeID})
		require.Same(t, c, cl.leader(b.cfg.NodeID, c.cfg.NodeID))
		require.NoError(t, b.WaitReady(t.Context()))
		cl.network.Heal()
	})
}
