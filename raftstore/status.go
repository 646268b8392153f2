package raftstore

import (
	"kontiki/mvcc"
)

// Status is what a member can say about itself.
type Status struct {
	NodeID      string
	Role        string // Follower, Candidate, Leader or Shutdown
	Term        uint64
	Leader      Peer // zero if unknown
	Members     []Peer
	FirstIndex  uint64 // of the raft log
	LastIndex   uint64
	CommitIndex uint64
	Store       mvcc.Stats // revision, compacted revision, applied index, sizes
	Compaction  Compaction // by age, as far as this member proposed it
}

// Status returns current figures. They are read one after the other, so they may be of slightly
// different moments.
func (m *Member) Status() (Status, error) {
	leader, id := m.raft.LeaderWithID()
	s := Status{
		NodeID: m.cfg.NodeID, Role: m.raft.State().String(), Term: m.raft.CurrentTerm(),
		Leader:    Peer{ID: string(id), Address: string(leader)},
		LastIndex: m.raft.LastIndex(), CommitIndex: m.raft.CommitIndex(),
		Compaction: m.retention.status(),
	}
	for _, server := range m.raft.GetConfiguration().Configuration().Servers {
		s.Members = append(s.Members, Peer{ID: string(server.ID), Address: string(server.Address)})
	}
	var err error
	if s.FirstIndex, err = m.log.FirstIndex(); err != nil {
		return s, err
	}
	s.Store, err = m.store.Stats()
	return s, err
}
