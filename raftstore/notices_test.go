package raftstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestNotice: a notice says no more than where the follower was led, and nothing that it was told already.
func TestNotice(t *testing.T) {
	require.Nil(t, place{}.notice(7), "before the first message nothing is known of the follower")

	p := placeAfter(&raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a")}, Term: 5, Leader: []byte("a"),
		PrevLogEntry: 9, PrevLogTerm: 4, LeaderCommitIndex: 9, Entries: []*raft.Log{{Index: 10, Term: 4}, {Index: 11, Term: 5}},
	})
	require.Nil(t, p.notice(0), "no leader any more")
	require.Nil(t, p.notice(9), "it knows that")
	for commit, want := range map[uint64]uint64{10: 10, 11: 11, 12: 11} {
		require.Equal(t, &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a")}, Term: 5, Leader: []byte("a"),
			PrevLogEntry: 11, PrevLogTerm: 5, LeaderCommitIndex: want,
		}, p.notice(commit))
	}
	after := placeAfter(p.notice(11))
	require.Nil(t, after.notice(12), "it was told of all that it has")
}

// TestLoneCommitIsHeardOf: followers apply a write after which nothing else is written noticeAfter later, not at raft's own pace; and
// only the leader of a term knows of commits in it.
func TestLoneCommitIsHeardOf(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		leader := c.leader(names...)
		for range 5 {
			time.Sleep(time.Second) // nothing is on its way; raft's pipelines are there
			_, err := leader.Txn(t.Context(), putTxn("k", "v"))
			require.NoError(t, err)
			acknowledged := time.Now()
			for _, name := range c.others(leader) {
				require.NoError(t, c.members[name].store.WaitApplied(t.Context(), leader.store.Applied()))
			}
			require.LessOrEqual(t, time.Since(acknowledged), noticeAfter) // of the bubble's time, in which disks take none
		}

		term := leader.raft.CurrentTerm()
		require.Equal(t, leader.raft.CommitIndex(), (&commits{raft: leader.raft}).index(term))
		require.Zero(t, (&commits{raft: leader.raft}).index(term-1))
		require.Zero(t, (&commits{raft: c.members[c.others(leader)[0]].raft}).index(term))
	})
}
