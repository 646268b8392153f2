package raftstore

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// Followers elect a new leader when they have heard nothing from the old one for the heartbeat timeout, which has to
// be long: the silence may be a slow disk. But when the leader's process dies, its kernel says so: it ends the
// process's connections, and refuses new ones. A follower that sees both need not wait as long. It only makes its
// own timeout shorter, for one election: the others still refuse their pre-vote while they hear the leader
// (Raft thesis 9.6), so a firewall that refuses on the leader's behalf moves nobody.

const (
	// shortHeartbeatTimeout is the least that raft allows: a leader must have noticed by itself by then that it is alone.
	shortHeartbeatTimeout = leaderLeaseTimeout
	// probeInterval is how often a follower tries to reach a leader of whom it may have lost sight.
	probeInterval = 20 * time.Millisecond
	// turnToCampaign keeps the followers, who all see the leader die at the same moment, from splitting the vote.
	turnToCampaign = 100 * time.Millisecond
)

// watchLeader is a goroutine: it has this member campaign early when the leader's process has died.
func (m *Member) watchLeader(ctx context.Context) {
	for {
		select {
		case <-m.mux.raftEnded:
		case <-ctx.Done():
			return
		}
		address, leader := m.raft.LeaderWithID()
		if leader != "" && leader != m.raftID() && m.died(ctx, string(address)) {
			m.campaignAfter(ctx, leader)
		}
	}
}

// died says whether the leader's address refuses connections. A process that is being killed may lose its connections a
// moment before its listener, so it asks again, unless the leader is heard of meanwhile.
func (m *Member) died(ctx context.Context, address string) bool {
	began := time.Now()
	for !m.refuses(address) {
		if m.raft.LastContact().After(began) || time.Since(began) > shortHeartbeatTimeout || !pause(ctx, probeInterval) {
			return false
		}
	}
	return true
}

// refuses says whether the host at address answers that nobody listens there.
func (m *Member) refuses(address string) bool {
	conn, err := m.cfg.Network.Dial(address, dialTimeout)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// campaignAfter shortens the heartbeat timeout for an election, unless the leader is heard of again or there is another.
func (m *Member) campaignAfter(ctx context.Context, leader raft.ServerID) {
	rank := m.rankAfter(leader)
	if rank < 0 {
		return
	}
	wait := shortHeartbeatTimeout - time.Since(m.raft.LastContact()) + time.Duration(rank)*turnToCampaign
	if !pause(ctx, wait) {
		return
	}
	if _, now := m.raft.LeaderWithID(); now != leader || time.Since(m.raft.LastContact()) < shortHeartbeatTimeout {
		return
	}
	m.cfg.Log.Info("the leader's process has died: asking for votes", "leader", leader)
	m.setHeartbeatTimeout(shortHeartbeatTimeout)
	pause(ctx, electionTimeout)
	m.setHeartbeatTimeout(heartbeatTimeout)
}

// rankAfter is this member's place among the voters without the leader, by ID; -1 if it has no vote.
func (m *Member) rankAfter(leader raft.ServerID) int {
	var ids []raft.ServerID
	for _, s := range m.servers() {
		if s.Suffrage == raft.Voter && s.ID != leader {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	return slices.Index(ids, m.raftID())
}

func (m *Member) setHeartbeatTimeout(d time.Duration) {
	err := m.reloadRaft(func(rc *raft.ReloadableConfig) { rc.HeartbeatTimeout = d })
	if err != nil {
		m.cfg.Log.Warn("cannot set the heartbeat timeout", "timeout", d, "err", err)
	}
}

// reloadRaft changes what can be changed of raft's configuration while it runs.
func (m *Member) reloadRaft(change func(*raft.ReloadableConfig)) error {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	rc := m.raft.ReloadableConfig()
	change(&rc)
	return m.raft.ReloadConfig(rc)
}
