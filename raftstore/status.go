package raftstore

import (
	"errors"
	"os"
	"path/filepath"

	"kontiki/mvcc"
)

// Status is what a member can say about itself.
type Status struct {
	NodeID      string           `json:"nodeID"`
	Role        string           `json:"role"` // Follower, Candidate, Leader or Shutdown
	Term        uint64           `json:"term"`
	Vote        string           `json:"vote,omitempty"` // whom it gave its vote in this term: an address; empty if nobody
	Leader      Peer             `json:"leader"`         // zero if unknown
	Members     []Peer           `json:"members"`
	FirstIndex  uint64           `json:"firstIndex"` // of the raft log
	LastIndex   uint64           `json:"lastIndex"`
	CommitIndex uint64           `json:"commitIndex"`
	LogBytes    int64            `json:"logBytes"`           // of the files of the raft log
	Snapshot    *SnapshotStatus  `json:"snapshot,omitempty"` // the newest one; nil if there is none
	Sending     []SnapshotSender `json:"sending,omitempty"`  // snapshots that this member sends to others
	Store       mvcc.Stats       `json:"store"`              // revision, compacted revision, applied index, sizes
	QuotaBytes  int64            `json:"quotaBytes"`         // Config.QuotaBytes
	Compaction  Compaction       `json:"compaction"`         // by age, as far as this member proposed it
	Alarms      []Alarm          `json:"alarms,omitempty"`
}

// SnapshotStatus is a snapshot that raft has on disk.
type SnapshotStatus struct {
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	Bytes int64  `json:"bytes"`
}

// Status returns current figures. They are read one after the other, so they may be of slightly
// different moments.
func (m *Member) Status() (Status, error) {
	s := Status{
		NodeID: m.cfg.NodeID, Role: m.raft.State().String(), Term: m.raft.CurrentTerm(), Leader: m.Leader(),
		LastIndex: m.raft.LastIndex(), CommitIndex: m.raft.CommitIndex(), LogBytes: m.log.logBytes(), QuotaBytes: m.cfg.QuotaBytes,
		Sending: m.transport.sending.list(), Compaction: m.retention.status(), Alarms: m.Alarms(),
	}
	for _, server := range m.servers() {
		s.Members = append(s.Members, Peer{ID: string(server.ID), Address: string(server.Address)})
	}
	var errs [4]error
	s.FirstIndex, errs[0] = m.log.FirstIndex()
	s.Vote, errs[1] = m.vote(s.Term)
	s.Snapshot, errs[2] = m.newestSnapshot()
	s.Store, errs[3] = m.store.Stats()
	return s, errors.Join(errs[:]...)
}

// vote is whom this member voted for in a term.
func (m *Member) vote(term uint64) (string, error) {
	voted, err := m.log.GetUint64(keyLastVoteTerm)
	if err != nil || voted != term {
		return "", ignoreNotFound(err)
	}
	candidate, err := m.log.Get(keyLastVoteCandidate)
	return string(candidate), ignoreNotFound(err)
}

// ignoreNotFound is nil for the way in which stable stores say that a key is not there: by this text.
func ignoreNotFound(err error) error {
	if err != nil && err.Error() == "not found" {
		return nil
	}
	return err
}

func (m *Member) newestSnapshot() (*SnapshotStatus, error) {
	list, err := m.snapshots.List()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &SnapshotStatus{Index: list[0].Index, Term: list[0].Term, Bytes: list[0].Size}, nil
}

// fileBytes is the size of a file, or of all files of a directory.
func fileBytes(dir, name string) (size int64) {
	_ = filepath.WalkDir(filepath.Join(dir, name), func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
