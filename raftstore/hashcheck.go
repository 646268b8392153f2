package raftstore

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
)

// MemberHash is the fingerprint of a member's content at a revision. Err is set if it has none to give:
// it does not answer, or has compacted the revision.
type MemberHash struct {
	MemberID string
	Revision int64
	Hash     mvcc.Hash
	Err      error
}

// hashTimeout bounds how long a member may take to read all of its content.
const hashTimeout = time.Minute

// Hashes asks all members for their fingerprint at a revision, 0 being the newest now.
func (m *Member) Hashes(ctx context.Context, revision int64) ([]MemberHash, error) {
	if revision <= 0 {
		if err := m.catchUp(ctx); err != nil {
			return nil, err
		}
		revision = m.store.Revision()
	}
	ctx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	members := m.LocalMembers()
	hashes := make([]MemberHash, len(members))
	done := make(chan struct{}, len(members))
	for i, member := range members {
		hashes[i] = MemberHash{MemberID: member.ID, Revision: revision}
		go func() {
			hashes[i].Hash, hashes[i].Err = m.hashOf(ctx, member, revision)
			done <- struct{}{}
		}()
	}
	for range members {
		<-done
	}
	return hashes, nil
}

func (m *Member) hashOf(ctx context.Context, member MemberInfo, revision int64) (mvcc.Hash, error) {
	if member.ID == m.cfg.NodeID {
		return m.hashWhenThere(ctx, revision)
	}
	return m.forwarder.hash(ctx, member.Address, revision)
}

// hashWhenThere is the store's HashAt, after the member has caught up if need be.
func (m *Member) hashWhenThere(ctx context.Context, revision int64) (mvcc.Hash, error) {
	if revision > m.store.Revision() {
		if err := m.catchUp(ctx); err != nil {
			return mvcc.Hash{}, err
		}
	}
	h, _, err := m.store.HashAt(revision)
	return h, err
}

// hash asks the member at address for its fingerprint at a revision.
func (f *forwarder) hash(ctx context.Context, address string, revision int64) (h mvcc.Hash, err error) {
	var e encoder
	e.varint(revision)
	body, err := f.call(ctx, address, frameHash, e.b)
	if err != nil {
		return h, err
	}
	if len(body) != len(h) {
		return h, ErrFormat
	}
	return mvcc.Hash(body), nil
}

func (s *server) hash(ctx context.Context, body []byte) ([]byte, error) {
	d := decoder{b: body}
	revision := d.varint()
	if err := d.end(); err != nil {
		return nil, err
	}
	h, err := s.member.hashWhenThere(ctx, revision)
	return h[:], err
}

// compareHashes is a goroutine: the leader compares all members' content now and then. A state machine is
// deterministic or it is not one, and a disk may lie; both show here and nowhere else.
func (m *Member) compareHashes(ctx context.Context) {
	for pause(ctx, m.cfg.HashInterval) {
		if m.raft.State() == raft.Leader {
			m.compareOnce(ctx)
		}
	}
}

func (m *Member) compareOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	hashes, err := m.Hashes(ctx, 0)
	if err != nil {
		m.cfg.Log.Debug("content not compared", "err", err)
		return
	}
	m.counters.hashChecks.Add(1)
	for _, h := range strangers(hashes) {
		m.counters.hashMismatches.Add(1)
		err := m.raise(ctx, Alarm{Kind: AlarmCorrupt, MemberID: h.MemberID})
		m.cfg.Log.Error("content differs from that of most members: replace the member", "id", h.MemberID,
			"revision", h.Revision, "hash", hex.EncodeToString(h.Hash[:]), "err", err)
	}
}

// strangers returns those that do not have the fingerprint that most have. With no such majority, it is all
// who answered: any of them may be wrong.
func strangers(hashes []MemberHash) (odd []MemberHash) {
	votes, answered := map[mvcc.Hash]int{}, 0
	for _, h := range hashes {
		if h.Err == nil {
			votes[h.Hash]++
			answered++
		}
	}
	if len(votes) < 2 {
		return nil
	}
	for _, h := range hashes {
		if h.Err == nil && votes[h.Hash]*2 <= answered {
			odd = append(odd, h)
		}
	}
	return odd
}
