package rejoin

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// cluster is three members that can be parted.
type cluster struct {
	t       *testing.T
	members []*member
}

func newCluster(t *testing.T, store string, guarded bool) *cluster {
	c := &cluster{t: t}
	for _, s := range servers.Servers {
		c.members = append(c.members, newMember(t, s.ID, store, guarded))
	}
	c.connect(func(a, b *member) bool { return true })
	for _, m := range c.members {
		config := m.config()
		config.TrailingLogs = 1
		m.start(config)
	}
	return c
}

func (c *cluster) stop() {
	for _, m := range c.members {
		m.stop()
	}
}

func (c *cluster) connect(connected func(a, b *member) bool) {
	for _, a := range c.members {
		for _, b := range c.members {
			if a == b {
				continue
			}
			if connected(a, b) {
				a.trans.Connect(b.trans.LocalAddr(), b.trans)
			} else {
				a.trans.Disconnect(b.trans.LocalAddr())
			}
		}
	}
}

func (c *cluster) isolate(m *member) {
	c.connect(func(a, b *member) bool { return a != m && b != m })
}

// leader waits, in virtual time, for a leader other than one member.
func (c *cluster) leader(not *member) *member {
	for range 1000 {
		time.Sleep(100 * time.Millisecond)
		for _, m := range c.members {
			if m != not && m.raft.State() == raft.Leader {
				return m
			}
		}
	}
	require.FailNow(c.t, "no leader")
	return nil
}

func (c *cluster) propose(m *member, n int) {
	for i := range n {
		require.NoError(c.t, m.raft.Apply([]byte(word(uint64(i), 0)), time.Minute).Error())
	}
}

// rejoin makes a leader write conflicting entries alone, the others go on, take a snapshot and forget what
// the old leader would need; then it comes back. It returns the two leaders after a minute.
func rejoin(c *cluster, alone, together int) (old, leader *member) {
	old = c.leader(nil)
	c.propose(old, 5)
	c.isolate(old)
	for range alone {
		old.raft.Apply([]byte("lost"), 0)
	}
	leader = c.leader(old)
	c.propose(leader, together)
	require.NoError(c.t, leader.raft.Snapshot().Error())
	c.connect(func(a, b *member) bool { return true })
	time.Sleep(time.Minute)
	return old, leader
}

// TestConflictingLeader: a leader that wrote entries alone, and more of them than the others, comes back.
// It needs one snapshot, then it follows.
func TestConflictingLeader(t *testing.T) {
	for store := range logStores {
		for name, alone := range map[string]int{"longer": 40, "shorter": 5} {
			t.Run(store+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, store, true)
					defer c.stop()
					old, leader := rejoin(c, alone, 20)
					require.Equal(t, 1, old.installed())
					c.propose(leader, 5)
					time.Sleep(time.Second)
					for _, m := range c.members {
						require.Equal(t, leader.words.all(), m.words.all())
					}
					require.NotContains(t, leader.words.all(), "lost")
				})
			})
		}
	}
}

// TestConflictingLeaderUpstream: the same without the guard. The old leader downloads snapshots for as
// long as one looks.
func TestConflictingLeaderUpstream(t *testing.T) {
	for store := range logStores {
		t.Run(store, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, store, false)
				defer c.stop()
				old, _ := rejoin(c, 40, 20)
				before := old.installed()
				time.Sleep(time.Minute)
				require.Greater(t, old.installed(), before+10)
			})
		})
	}
}
