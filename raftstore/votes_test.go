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
