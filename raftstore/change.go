package raftstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// A change of membership is made by the leader, one at a time: raft adds or removes one server per
// entry, and the next has to wait until that is committed (Raft thesis 4.1).
type change struct {
	kind        byte
	id, address string
	name        string // of a member that joins; empty for one that is announced by somebody else
}

// Kinds of change.
const (
	changeAdd = iota + 1
	changeAddLearner
	changePromote
	changeDemote
	changeRemove
	changeUpdate
	changeLeader
)

// catchUpEntries is how many raft entries a learner may be behind to count as caught up: at the rate of
// the fastest load that is well below a second.
const catchUpEntries = 256

// change has the leader make a change. Who does not know whether it was made (ErrUnknownOutcome) looks at
// Members; to ask again does no harm.
func (m *Member) change(ctx context.Context, c change) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
	defer cancel()
	err := m.onLeader(ctx, func(leader string) error {
		if leader == "" {
			return m.makeChange(ctx, c)
		}
		return m.forwarder.change(ctx, leader, c)
	})
	if err == nil && c.kind == changeLeader {
		return m.waitLeader(ctx, c.id)
	}
	return err
}

// makeChange makes a change on the leader. ErrNotLeader means that it was not made here, and that the
// next leader is to be asked.
func (m *Member) makeChange(ctx context.Context, c change) error {
	if err := m.changes.take(ctx); err != nil {
		return fmt.Errorf("wait for another change: %w", err)
	}
	defer m.changes.pass()
	if _, err := m.readIndex.get(ctx); err != nil { // leads, and has all changes of earlier leaders
		return err
	}
	switch c.kind {
	case changeAdd, changeAddLearner:
		return m.add(ctx, c)
	case changePromote:
		return m.promote(ctx, c.id)
	case changeDemote:
		return m.demote(ctx, c.id)
	case changeRemove:
		return m.remove(ctx, c.id)
	case changeUpdate:
		return m.update(c)
	case changeLeader:
		return m.moveLeader(c.id)
	default:
		return ErrFormat
	}
}

func (m *Member) add(ctx context.Context, c change) error {
	if c.id == "" || c.address == "" {
		return fmt.Errorf("%w: id and address are required", ErrInvalidMember)
	}
	servers := m.servers()
	if s, ok := serverByID(servers, c.id); ok {
		if string(s.Address) == c.address {
			return nil // asked twice
		}
		return fmt.Errorf("%w: %s at %s", ErrMemberExists, s.ID, s.Address)
	}
	if err := m.checkName(c); err != nil {
		return err
	}
	if err := m.vacate(ctx, servers, c); err != nil {
		return err
	}
	if c.name != "" { // noted before it is a member, so that no other gets the name meanwhile
		if err := m.note(ctx, memberNotes+c.id, encodeMemberNote(c.name, nil)); err != nil {
			return err
		}
	}
	if c.kind == changeAddLearner {
		if err := m.note(ctx, learnerNotes+c.id, []byte{}); err != nil {
			return err
		}
	}
	return changeError(m.raft.AddNonvoter(raft.ServerID(c.id), raft.ServerAddress(c.address), 0, 0).Error())
}

// checkName refuses the name of a member at another address. At the same address it is that member with an empty
// disk (vacate).
func (m *Member) checkName(c change) error {
	if c.name == "" {
		return nil
	}
	for _, other := range m.LocalMembers() {
		if other.Name == c.name && other.Address != c.address {
			return fmt.Errorf("%w: %s is %s at %s", ErrNameTaken, c.name, other.ID, other.Address)
		}
	}
	return nil
}

// vacate removes the member that has the address of one to be added, if it is sure not to be there.
func (m *Member) vacate(ctx context.Context, servers []raft.Server, c change) error {
	old, taken := findServer(servers, func(s raft.Server) bool { return string(s.Address) == c.address })
	if !taken {
		return nil
	}
	there, err := m.forwarder.status(ctx, c.address)
	if err != nil || there.NodeID != c.id {
		return fmt.Errorf("%w: %s has %s", ErrAddressTaken, old.ID, c.address)
	}
	m.cfg.Log.Warn("member replaces one that was at its address", "id", c.id, "old", old.ID, "address", c.address)
	return m.remove(ctx, string(old.ID))
}

func (m *Member) promote(ctx context.Context, id string) error {
	s, ok := serverByID(m.servers(), id)
	switch {
	case !ok:
		return fmt.Errorf("%w: %s", ErrMemberNotFound, id)
	case s.Suffrage == raft.Voter:
		return fmt.Errorf("%w: %s", ErrNotLearner, id)
	}
	if err := m.caughtUp(ctx, s); err != nil {
		return err
	}
	if err := m.note(ctx, learnerNotes+id, nil); err != nil {
		return err
	}
	m.cfg.Log.Info("learner becomes a voter", "id", id)
	return changeError(m.raft.AddVoter(s.ID, s.Address, 0, 0).Error())
}

// caughtUp returns nil if a member has nearly all that is committed, and is in this leader's term.
func (m *Member) caughtUp(ctx context.Context, s raft.Server) error {
	commit, term := m.raft.CommitIndex(), m.raft.CurrentTerm()
	st, err := m.forwarder.status(ctx, string(s.Address))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %v", ErrLearnerNotReady, err) // not wrapped: that it cannot be reached is no reason to look for another leader
	case st.NodeID != string(s.ID):
		return fmt.Errorf("%w: at %s is %s", ErrLearnerNotReady, s.Address, st.NodeID)
	case st.Term != term || st.Store.Applied+catchUpEntries < commit:
		return fmt.Errorf("%w: it has applied %d of %d entries", ErrLearnerNotReady, st.Store.Applied, commit)
	}
	return nil
}

func (m *Member) demote(ctx context.Context, id string) error {
	s, ok := serverByID(m.servers(), id)
	switch {
	case !ok:
		return fmt.Errorf("%w: %s", ErrMemberNotFound, id)
	case s.Suffrage != raft.Voter:
		return nil
	}
	if err := m.enoughWithout(ctx, id); err != nil {
		return err
	}
	if id == m.cfg.NodeID {
		return m.passOn()
	}
	if err := m.note(ctx, learnerNotes+id, []byte{}); err != nil { // or the steward would promote it again
		return err
	}
	return changeError(m.raft.DemoteVoter(s.ID, 0, 0).Error())
}

func (m *Member) remove(ctx context.Context, id string) error {
	s, ok := serverByID(m.servers(), id)
	if !ok {
		return fmt.Errorf("%w: %s", ErrMemberNotFound, id)
	}
	if s.Suffrage == raft.Voter {
		if err := m.enoughWithout(ctx, id); err != nil {
			return err
		}
	}
	if id == m.cfg.NodeID {
		return m.passOn()
	}
	m.cfg.Log.Info("member is removed", "id", id)
	if err := changeError(m.raft.RemoveServer(s.ID, 0, 0).Error()); err != nil {
		return err
	}
	return m.clearNotes(ctx, id)
}

// passOn hands leadership over before this member is removed or demoted, so that the change is made by
// a leader that stays one. Raft would let a leader manage a majority that it is not part of (thesis 4.2.2).
func (m *Member) passOn() error {
	if err := m.transferLeadership(anyTarget, ""); err != nil {
		return fmt.Errorf("hand leadership over: %w", err)
	}
	return fmt.Errorf("%w: handed over", ErrNotLeader)
}

// enoughWithout refuses to take a vote if those that are left would be no majority, as far as they run.
func (m *Member) enoughWithout(ctx context.Context, id string) error {
	var left []raft.Server
	for _, s := range m.servers() {
		if s.Suffrage == raft.Voter && string(s.ID) != id {
			left = append(left, s)
		}
	}
	alive := 0
	for _, answer := range m.askAll(ctx, left) {
		if answer.Err == nil {
			alive++
		}
	}
	if needed := len(left)/2 + 1; alive < needed {
		return fmt.Errorf("%w: without %s, %d of %d voters would run, %d are needed", ErrNotEnoughMembers, id, alive, len(left), needed)
	}
	return nil
}

func (m *Member) update(c change) error {
	servers := m.servers()
	s, ok := serverByID(servers, c.id)
	if !ok {
		return fmt.Errorf("%w: %s", ErrMemberNotFound, c.id)
	}
	if c.address == "" {
		return fmt.Errorf("%w: address is required", ErrInvalidMember)
	}
	other, taken := findServer(servers, func(o raft.Server) bool { return string(o.Address) == c.address })
	if taken && other.ID != s.ID {
		return fmt.Errorf("%w: %s has %s", ErrAddressTaken, other.ID, c.address)
	}
	if s.Suffrage == raft.Voter {
		return changeError(m.raft.AddVoter(s.ID, raft.ServerAddress(c.address), 0, 0).Error())
	}
	return changeError(m.raft.AddNonvoter(s.ID, raft.ServerAddress(c.address), 0, 0).Error())
}

func (m *Member) moveLeader(id string) error {
	s, ok := serverByID(m.servers(), id)
	switch {
	case !ok || s.Suffrage != raft.Voter:
		return fmt.Errorf("%w: %q", ErrBadTransferee, id)
	case id == m.cfg.NodeID:
		return nil
	}
	return m.transferLeadership(s.ID, s.Address)
}

// changeError sorts raft's errors as proposalError does: a change is an entry, too.
func changeError(err error) error {
	for _, e := range []error{raft.ErrNotLeader, raft.ErrLeadershipLost, raft.ErrLeadershipTransferInProgress, raft.ErrRaftShutdown} {
		if errors.Is(err, e) {
			return proposalError(err)
		}
	}
	return err
}

// change has the leader at address make a change.
func (f *forwarder) change(ctx context.Context, address string, c change) error {
	var e encoder
	e.byte(c.kind)
	e.string(c.id)
	e.string(c.address)
	e.string(c.name)
	_, err := f.call(ctx, address, frameChange, e.b)
	if errors.Is(err, errLost) { // it may have been made; all changes can be asked for twice
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return err
}

func decodeChange(b []byte) (c change, err error) {
	d := decoder{b: b}
	c = change{kind: d.byte(), id: d.string(), address: d.string(), name: d.string()}
	return c, d.end()
}
