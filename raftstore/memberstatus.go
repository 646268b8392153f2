package raftstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// MemberStatus is a member and what it says about itself. Err is set if it did not answer.
type MemberStatus struct {
	MemberInfo
	Status Status
	Err    error
}

// statusTimeout bounds how long a member may take to say how it is.
const statusTimeout = time.Second

// MemberStatuses asks all members how they are, in the order of Members.
func (m *Member) MemberStatuses(ctx context.Context) []MemberStatus {
	var servers []raft.Server
	members := m.LocalMembers()
	for _, i := range members {
		servers = append(servers, raft.Server{ID: raft.ServerID(i.ID), Address: raft.ServerAddress(i.Address)})
	}
	statuses := m.askAll(ctx, servers)
	for i := range statuses {
		statuses[i].MemberInfo = members[i]
	}
	return statuses
}

// askAll asks servers how they are, all at once.
func (m *Member) askAll(ctx context.Context, servers []raft.Server) []MemberStatus {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	statuses := make([]MemberStatus, len(servers))
	done := make(chan int, len(servers))
	for i, s := range servers {
		statuses[i].MemberInfo = MemberInfo{ID: string(s.ID), Address: string(s.Address), Learner: s.Suffrage != raft.Voter}
		go func() {
			statuses[i].Status, statuses[i].Err = m.ask(ctx, s)
			done <- i
		}()
	}
	for range servers {
		<-done
	}
	return statuses
}

func (m *Member) ask(ctx context.Context, s raft.Server) (Status, error) {
	if s.ID == m.raftID() {
		return m.Status()
	}
	st, err := m.forwarder.status(ctx, string(s.Address))
	if err == nil && st.NodeID != string(s.ID) {
		err = fmt.Errorf("member %s is at %s in its place", st.NodeID, s.Address)
	}
	return st, err
}

// status asks the member at address how it is. This goes in JSON: it is not asked often, and members of
// different versions can tell each other what both know.
func (f *forwarder) status(ctx context.Context, address string) (st Status, err error) {
	body, err := f.call(ctx, address, frameStatus, nil)
	if err != nil {
		return st, err
	}
	if err := json.Unmarshal(body, &st); err != nil {
		return st, fmt.Errorf("%w: status: %w", ErrFormat, err)
	}
	return st, nil
}

func (s *server) status() ([]byte, error) {
	st, err := s.member.Status()
	if err != nil {
		return nil, err
	}
	return json.Marshal(st)
}
