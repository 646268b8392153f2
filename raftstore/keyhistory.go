package raftstore

import (
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// KeyChange is one change of a key, and who asked for it, as far as this member's log reaches back.
type KeyChange struct {
	Revision       int64      `json:"revision"`
	Sub            int32      `json:"sub"`
	Kind           string     `json:"kind"` // put or delete
	CreateRevision int64      `json:"createRevision,omitempty"`
	Version        int64      `json:"version,omitempty"`
	Lease          int64      `json:"lease,omitempty"`
	Value          []byte     `json:"value,omitempty"`
	Index          uint64     `json:"index,omitempty"` // of the raft entry; 0 if unknown
	Term           uint64     `json:"term,omitempty"`  // of the raft entry; 0 if the log does not reach back so far
	At             *time.Time `json:"at,omitempty"`    // when the leader of the time appended it, by its clock
	By             *Origin    `json:"by,omitempty"`    // nil if the log does not reach back so far
}

// History returns all changes of a key that compaction has left, oldest first. It is this member's own view, and needs
// no leader.
func (m *Member) History(key []byte) ([]KeyChange, error) {
	versions, err := m.store.Versions(key)
	if err != nil {
		return nil, err
	}
	changes := make([]KeyChange, len(versions))
	for i, v := range versions {
		changes[i] = KeyChange{Revision: v.Revision.Main, Sub: v.Revision.Sub, Kind: "put", CreateRevision: v.KV.CreateRevision,
			Version: v.KV.Version, Lease: v.KV.Lease, Value: v.KV.Value, Index: v.Cause.Index}
		if v.Type == mvcc.DeleteEvent {
			changes[i].Kind = "delete"
		}
		m.attribute(&changes[i], v.Cause)
	}
	return changes, nil
}

// attribute adds what the log says about a change.
func (m *Member) attribute(c *KeyChange, cause mvcc.Cause) {
	var l raft.Log
	if cause.Index == 0 || m.log.GetLog(cause.Index, &l) != nil || l.Type != raft.LogCommand {
		return
	}
	proposals, err := decodeEntry(l.Data)
	if err != nil || cause.Position >= len(proposals) {
		return
	}
	c.Term, c.At, c.By = l.Term, &l.AppendedAt, &proposals[cause.Position].origin
}
