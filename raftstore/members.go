package raftstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// MemberInfo is one member as the cluster knows it.
type MemberInfo struct {
	ID         string   `json:"id"`                   // unique for ever: a member with an empty disk is another member
	Name       string   `json:"name,omitempty"`       // for people, and what its certificate is for; empty until it has started
	Address    string   `json:"address"`              // where members reach it
	ClientURLs []string `json:"clientURLs,omitempty"` // where clients reach it; empty until it has started
	Learner    bool     `json:"learner"`              // it has the log, but no vote
}

// Members returns the members of the cluster, linearizably, by id.
func (m *Member) Members(ctx context.Context) ([]MemberInfo, error) {
	if err := m.catchUp(ctx); err != nil {
		return nil, err
	}
	return m.LocalMembers(), nil
}

// LocalMembers returns the members that this one knows of, by id. Of itself it gives the address that it has now, which the
// others learn a little later (tellAddress): who reads it here could not reach it at the one before.
func (m *Member) LocalMembers() []MemberInfo {
	servers := m.servers()
	members := make([]MemberInfo, len(servers))
	for i, s := range servers {
		members[i] = MemberInfo{ID: string(s.ID), Address: string(s.Address), Learner: s.Suffrage != raft.Voter}
		if s.ID == m.raftID() {
			members[i].Address = m.cfg.Network.Address()
		}
		members[i].Name, members[i].ClientURLs = readMemberNote(m.store, members[i].ID)
	}
	slices.SortFunc(members, func(a, b MemberInfo) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

// AddMember adds a member that will run at address. It begins as a learner, and is given its vote once it has
// caught up (steward.go), so a member that never starts, or cannot follow, costs the cluster nothing.
//
// If another member has the address and does not run there any more, because the one to be added does (its
// disk was lost), or because it never started, that one is removed first.
func (m *Member) AddMember(ctx context.Context, id, address string) error {
	return m.change(ctx, change{kind: changeAdd, id: id, address: address})
}

// AddLearner is AddMember for a member that gets no vote until PromoteMember says so.
func (m *Member) AddLearner(ctx context.Context, id, address string) error {
	return m.change(ctx, change{kind: changeAddLearner, id: id, address: address})
}

// PromoteMember gives a learner its vote. ErrLearnerNotReady means that it has not caught up yet.
func (m *Member) PromoteMember(ctx context.Context, id string) error {
	return m.change(ctx, change{kind: changePromote, id: id})
}

// DemoteMember takes the vote from a member; it goes on as a learner.
func (m *Member) DemoteMember(ctx context.Context, id string) error {
	return m.change(ctx, change{kind: changeDemote, id: id})
}

// RemoveMember removes any member. The leader hands over first, and the next one removes it. A member
// that was removed stops by itself (Removed); one that is away learns of it when it is back.
func (m *Member) RemoveMember(ctx context.Context, id string) error {
	return m.change(ctx, change{kind: changeRemove, id: id})
}

// UpdateMember changes the address at which the others reach a member.
func (m *Member) UpdateMember(ctx context.Context, id, address string) error {
	return m.change(ctx, change{kind: changeUpdate, id: id, address: address})
}

// MoveLeader has another voter lead, and returns when this member knows that it does. ErrBadTransferee: there
// is no such voter.
func (m *Member) MoveLeader(ctx context.Context, id string) error {
	return m.change(ctx, change{kind: changeLeader, id: id})
}

// Leader is the member that leads, as far as this one knows; zero if it knows of none.
func (m *Member) Leader() Peer {
	address, id := m.raft.LeaderWithID()
	return Peer{ID: string(id), Address: string(address)}
}

// waitLeader waits until this member knows that the member of an id leads.
func (m *Member) waitLeader(ctx context.Context, id string) error {
	for {
		if _, leader := m.raft.LeaderWithID(); leader == raft.ServerID(id) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrTransferFailed, ctx.Err())
		case <-time.After(retryMin):
		}
	}
}

// ID is this member's id.
func (m *Member) ID() string { return m.cfg.NodeID }

// servers is the newest configuration that this member has in its log.
func (m *Member) servers() []raft.Server {
	return m.raft.GetConfiguration().Configuration().Servers
}

func findServer(servers []raft.Server, match func(raft.Server) bool) (raft.Server, bool) {
	if i := slices.IndexFunc(servers, match); i >= 0 {
		return servers[i], true
	}
	return raft.Server{}, false
}

func serverByID(servers []raft.Server, id string) (raft.Server, bool) {
	return findServer(servers, func(s raft.Server) bool { return string(s.ID) == id })
}
