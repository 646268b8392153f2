package raftstore

import (
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// A member that was sent a snapshot needs the entries behind it next. Meanwhile the leader takes newer snapshots, and
// would cut its log behind those: the member would need another one, and so on for as long as clients write faster than
// snapshots travel (RF-09). So compaction leaves the log behind a snapshot that is being sent, as in etcd, unless the
// log has grown to heldLogs times Config.LogBytes, or the size of the store if that is more: the disk comes first.

const (
	// heldAfter is how long after a snapshot was opened, or sent, the log behind it stays.
	heldAfter = 30 * time.Second
	heldLogs  = 4
)

// hold keeps the log from an index on, for heldAfter. mu is held.
func (s *sending) hold(index uint64) {
	if s.held == nil {
		s.held = map[uint64]time.Time{}
	}
	s.held[index] = time.Now().Add(heldAfter)
}

// oldest is the index of the oldest snapshot that a member needs the log behind; 0 if there is none.
func (s *sending) oldest() (index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.active {
		s.hold(x.index)
	}
	for held, until := range s.held {
		if time.Now().After(until) {
			delete(s.held, held)
		} else if index == 0 || held < index {
			index = held
		}
	}
	return index
}

// keepLogFrom is the first entry that compaction has to leave; 0 if it may go by itself.
func (m *Member) keepLogFrom() uint64 {
	if m.log.logBytes() > heldLogs*max(m.cfg.LogBytes, m.storeBytes()) {
		return 0
	}
	return m.transport.sending.oldest()
}

// heldSnapshots are raft's snapshots. One that is opened is about to be sent: it is verified first, which takes long if
// it is large.
type heldSnapshots struct {
	raft.SnapshotStore
	sending *sending
}

// Open implements raft.SnapshotStore.
func (h heldSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	list, err := h.List()
	if err != nil {
		return nil, nil, err
	}
	for _, meta := range list {
		if meta.ID == id {
			h.sending.mu.Lock()
			h.sending.hold(meta.Index)
			h.sending.mu.Unlock()
		}
	}
	return h.SnapshotStore.Open(id)
}
