package raftstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// join starts a member that joins through others; address is where it runs, by default its name.
func (c *cluster) join(name, address string, through ...string) *Member {
	if address == "" {
		address = name
	}
	cfg := Config{Dir: filepath.Join(c.dir, name), NodeID: name, Name: "node-" + name, ClientURLs: []string{"https://" + name + ":2379"},
		Network: c.network.Join(address), Join: through, Log: quiet()}
	if c.tune != nil {
		c.tune(&cfg)
	}
	c.members[name] = openMember(c.t, cfg)
	return c.members[name]
}

// member waits until a member is listed as the test wants it.
func (c *cluster) listed(through *Member, id string, want func(MemberInfo, bool) bool) {
	c.t.Helper()
	for range 1000 {
		list, err := through.Members(c.t.Context())
		require.NoError(c.t, err)
		i, found := MemberInfo{}, false
		for _, x := range list {
			if x.ID == id {
				i, found = x, true
			}
		}
		if want(i, found) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.t.Fatalf("member %s never became what it should: %v", id, through.LocalMembers())
}

func isVoter(i MemberInfo, found bool) bool   { return found && !i.Learner }
func isLearner(i MemberInfo, found bool) bool { return found && i.Learner }
func isGone(_ MemberInfo, found bool) bool    { return !found }

func (c *cluster) put(through *Member, key string) {
	c.t.Helper()
	_, err := through.Txn(c.t.Context(), putTxn(key, key))
	require.NoError(c.t, err)
}

// TestJoin: a new member asks any other to be let in, gets the log, or a snapshot, and its vote; and all
// know its name and where clients reach it.
func TestJoin(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, func(cfg *Config) { cfg.SnapshotEntries = 20 })
		defer c.close()
		leader := c.leader(names...)
		for i := range 60 {
			c.put(leader, fmt.Sprint("k", i))
		}
		require.NoError(t, leader.raft.Snapshot().Error())
		follower := c.members[c.others(leader)[0]]
		d := c.join("d", "", "nobody", follower.cfg.NodeID)
		c.listed(leader, "d", isVoter)
		c.put(d, "from-d")
		c.same()
		c.listed(follower, "d", func(i MemberInfo, _ bool) bool {
			return i.Name == "node-d" && len(i.ClientURLs) == 1 && i.ClientURLs[0] == "https://d:2379"
		})
		c.stop("d") // it is a member: it need not join again
		c.join("d", "", "nobody")
		c.same()
		require.Len(t, leader.LocalMembers(), 4)
	})
}

// TestLearner: one that was added as a learner stays one until it is promoted, has no say meanwhile, and
// cannot be promoted before it has caught up.
func TestLearner(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		leader := c.leader(names...)
		follower := c.members[c.others(leader)[0]]
		require.NoError(t, follower.AddLearner(t.Context(), "d", "d"))
		require.NoError(t, follower.AddLearner(t.Context(), "d", "d"), "asking twice does no harm")
		require.ErrorIs(t, leader.AddMember(t.Context(), "d", "elsewhere"), ErrMemberExists)
		require.ErrorIs(t, leader.AddMember(t.Context(), "e", follower.cfg.NodeID), ErrAddressTaken)
		require.ErrorIs(t, follower.PromoteMember(t.Context(), "d"), ErrLearnerNotReady)
		require.ErrorIs(t, follower.PromoteMember(t.Context(), "x"), ErrMemberNotFound)
		require.ErrorIs(t, follower.PromoteMember(t.Context(), "a"), ErrNotLearner)
		require.ErrorIs(t, follower.MoveLeader(t.Context(), "d"), ErrBadTransferee)

		d := c.join("d", "", "a")
		c.put(leader, "k")
		require.NoError(t, d.WaitReady(t.Context()))
		time.Sleep(5 * stewardInterval)
		c.listed(d, "d", isLearner)
		res, err := d.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
		require.NoError(t, err)
		require.Len(t, res.KVs, 1, "a learner serves reads")
		require.NoError(t, d.PromoteMember(t.Context(), "d"))
		c.listed(leader, "d", isVoter)
		require.NoError(t, leader.DemoteMember(t.Context(), "d"))
		time.Sleep(5 * stewardInterval)
		c.listed(leader, "d", isLearner)
	})
}

// TestRemove_RF05: a member that is removed, the leader too, leaves without an election that lasts; one
// that was away when it was removed learns of it, and raises nobody's term.
func TestRemove_RF05(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		c.join("d", "", "a")
		leader := c.leader(names...)
		c.listed(leader, "d", isVoter)

		away := c.others(leader)[0]
		c.stop(away)
		require.NoError(t, leader.RemoveMember(t.Context(), away))
		require.ErrorIs(t, leader.RemoveMember(t.Context(), away), ErrMemberNotFound)
		term := leader.raft.CurrentTerm()
		c.start(away) // with its old data
		select {
		case <-c.members[away].Removed():
		case <-time.After(10 * time.Second):
			t.Fatal("the removed member does not know")
		}
		_, err := c.members[away].Txn(t.Context(), putTxn("k", "v"))
		require.ErrorIs(t, err, ErrRemoved)
		time.Sleep(60 * time.Second)
		require.Equal(t, term, leader.raft.CurrentTerm())
		require.Equal(t, raft.Leader, leader.raft.State())
		c.stop(away)

		begin := time.Now()
		other := c.members[c.others(leader)[0]]
		require.NoError(t, other.RemoveMember(t.Context(), leader.cfg.NodeID))
		c.put(other, "after")
		require.Less(t, time.Since(begin), 5*time.Second)
		select {
		case <-leader.Removed():
		case <-time.After(10 * time.Second):
			t.Fatal("the removed leader does not know")
		}
		next := c.leader(c.others(leader)...)
		term = next.raft.CurrentTerm()
		time.Sleep(60 * time.Second)
		require.Equal(t, term, next.raft.CurrentTerm())
	})
}

// TestRemovedWhenJustIn_RF05: a member that is removed as soon as it was added does not ask to be let in again.
func TestRemovedWhenJustIn_RF05(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		leader := c.leader(names...)
		d := c.join("d", "", leader.cfg.NodeID)
		c.listed(leader, "d", func(_ MemberInfo, found bool) bool { return found })
		require.NoError(t, leader.RemoveMember(t.Context(), "d"))
		select {
		case <-d.Removed():
		case <-time.After(time.Minute):
			t.Fatal("the removed member does not know")
		}
		require.Len(t, leader.LocalMembers(), 3)
	})
}

// TestDemotedWhileAway_RF05: a voter that was demoted while it was away disturbs nobody when it is back.
func TestDemotedWhileAway_RF05(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		leader := c.leader(names...)
		away := c.members[c.others(leader)[0]]
		c.network.Partition([]string{away.cfg.NodeID})
		time.Sleep(5 * time.Second)
		require.NoError(t, leader.DemoteMember(t.Context(), away.cfg.NodeID))
		term := leader.raft.CurrentTerm()
		c.network.Heal()
		c.same()
		time.Sleep(60 * time.Second)
		require.Equal(t, term, leader.raft.CurrentTerm())
		require.NoError(t, away.PromoteMember(t.Context(), away.cfg.NodeID))
		c.listed(leader, away.cfg.NodeID, isVoter)
	})
}

// TestRemoveKeepsMajority: what would leave no majority running is refused.
func TestRemoveKeepsMajority(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		leader := c.leader(names...)
		others := c.others(leader)
		c.stop(others[0])
		require.ErrorIs(t, leader.RemoveMember(t.Context(), others[1]), ErrNotEnoughMembers)
		require.NoError(t, leader.RemoveMember(t.Context(), others[0]), "the one that is down can go")
		require.ErrorIs(t, leader.UpdateMember(t.Context(), others[1], leader.cfg.NodeID), ErrAddressTaken)
		c.put(leader, "k")
		require.NoError(t, leader.RemoveMember(t.Context(), others[1]))
		require.ErrorIs(t, leader.RemoveMember(t.Context(), leader.cfg.NodeID), ErrNotEnoughMembers, "the last one stays")
		c.put(leader, "alone")
	})
}

func TestMoveLeader(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		for _, to := range []string{"a", "b", "c", "c", "a"} {
			for _, name := range names {
				require.NoError(t, c.members[name].MoveLeader(t.Context(), to))
				require.Equal(t, Peer{ID: to, Address: to}, c.members[name].Leader())
			}
			c.put(c.members["b"], to)
		}
		require.ErrorIs(t, c.members["b"].MoveLeader(t.Context(), "x"), ErrBadTransferee)
	})
}

// TestLostDisk: a member that comes back with nothing, under a new id at its old address, takes the place of
// the old one.
func TestLostDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		leader := c.leader(names...)
		lost := c.others(leader)[0]
		c.put(leader, "before")
		c.stop(lost)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, lost)))
		c.join("fresh", lost, leader.cfg.NodeID)
		c.listed(leader, "fresh", isVoter)
		c.listed(leader, lost, isGone)
		c.same()
		require.Len(t, leader.LocalMembers(), 3)
	})
}

// TestMembersAnswer: every member knows how the others are, and who does not answer.
func TestMembersAnswer(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		c.put(c.members["a"], "k")
		c.same()
		c.stop("b")
		c.leader("a", "c")
		for _, s := range c.members["a"].MemberStatuses(context.Background()) {
			if s.ID == "b" {
				require.Error(t, s.Err)
				continue
			}
			require.NoError(t, s.Err)
			require.Equal(t, s.ID, s.Status.NodeID)
			require.EqualValues(t, 2, s.Status.Store.Revision)
		}
	})
}
