package raftstore

import (
	"context"

	"kontiki/mvcc"
)

// What the etcd API asks for beyond Range, Txn and Watch.

// CatchUp waits until this member has applied everything that was acknowledged before the call: reads
// of its own copy are linearizable then.
func (m *Member) CatchUp(ctx context.Context) error { return m.catchUp(ctx) }

// LocalRange reads this member's copy as it is, old perhaps: a serializable read.
func (m *Member) LocalRange(req mvcc.RangeRequest) (mvcc.RangeResult, error) {
	return m.store.Range(req)
}

// LocalTxn runs a transaction that writes nothing against this member's copy.
func (m *Member) LocalTxn(req *mvcc.TxnRequest) (mvcc.TxnResult, error) { return m.store.ReadTxn(req) }

// LocalRevision is the newest revision of this member's copy.
func (m *Member) LocalRevision() int64 { return m.store.Revision() }

// WatchFunc is Watch with calls in place of a channel; see mvcc.Store.WatchFunc.
func (m *Member) WatchFunc(ctx context.Context, req mvcc.WatchRequest, deliver func(mvcc.WatchBatch) bool) <-chan struct{} {
	return m.store.WatchFunc(ctx, req, deliver)
}

// RequestProgress has the watches on this member that ask for progress catch up with LocalRevision now.
func (m *Member) RequestProgress() { m.store.RequestProgress() }

// Term is raft's current term, as this member knows it.
func (m *Member) Term() uint64 { return m.raft.CurrentTerm() }

// HasLeader says whether this member knows of a leader.
func (m *Member) HasLeader() bool {
	_, id := m.raft.LeaderWithID()
	return id != ""
}
