package storage

import (
	"context"

	"kontiki/mvcc"
	"kontiki/watch"
)

// KV is the whole of what the API server asks of a store. Two things implement it: the raft member
// in this process (raftstore.Member) and any etcd v3 endpoint.
type KV interface {
	watch.Source

	// Txn runs a transaction. A nil error means that it is durable on a quorum. raftstore.ErrUnknownOutcome
	// means that it may or may not have happened; every other error means that it did not.
	Txn(ctx context.Context, req mvcc.TxnRequest) (mvcc.TxnResult, error)
}
