package raftstore

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestOtherCluster: a member of a cluster of its own does not join another, and leaves nothing running
// (the bubble would not end).
func TestOtherCluster(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		alone := Config{Dir: filepath.Join(dir, "x"), NodeID: "x", Network: c.network.Join("x"), Bootstrap: true, Log: quiet()}
		require.NoError(t, openMember(t, alone).Close())

		alone.Network, alone.Bootstrap, alone.Join = c.network.Join("x"), false, names
		_, err := Open(alone)
		require.ErrorIs(t, err, ErrOtherCluster)
	})
}

// TestHaveMet: members of one cluster know that they are, though each was replaced, or replaced others, while the other was away.
func TestHaveMet(t *testing.T) {
	configuration := func(ids ...raft.ServerID) (all []raft.Server) {
		for _, id := range ids {
			all = append(all, raft.Server{ID: id})
		}
		return all
	}
	peers := func(ids ...string) (all []Peer) {
		for _, id := range ids {
			all = append(all, Peer{ID: id})
		}
		return all
	}
	for _, c := range []struct {
		here  []raft.Server
		there []Peer
		met   bool
	}{
		{configuration("a", "b", "c"), peers("a", "b", "c"), true},
		{configuration("a", "b", "c2"), peers("a", "b2", "c"), true}, // c2 asks b2
		{configuration("x"), peers("a", "b", "c"), false},
		{configuration("a", "b", "c"), nil, false},
	} {
		require.Equal(t, c.met, haveMet(c.here, c.there), "%v and %v", c.here, c.there)
	}
}

// A member that has another address knows it at once, and with a leader the others do, too.
func TestAddressAfterMove(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		for _, name := range names {
			c.stop(name)
		}
		address := func(of *Member) string {
			members := of.LocalMembers()
			require.Len(t, members, len(names))
			return members[0].Address
		}
		moved := c.join("a", "elsewhere")
		require.False(t, moved.HasLeader())
		require.Equal(t, "elsewhere", address(moved), "who asks here for the members must get there")
		c.start("b")
		c.start("c")
		require.Eventually(t, func() bool { return address(c.members["b"]) == "elsewhere" }, time.Minute, time.Second)
	})
}
