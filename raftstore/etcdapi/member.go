package etcdapi

import (
	"context"
	"io"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// Member is what the API needs of a store member; *raftstore.Member is one.
type Member interface {
	// CatchUp waits until what LocalRange and LocalTxn read is linearizable.
	CatchUp(ctx context.Context) error
	LocalRange(req mvcc.RangeRequest) (mvcc.RangeResult, error)
	LocalTxn(req *mvcc.TxnRequest) (mvcc.TxnResult, error)
	LocalRevision() int64

	Txn(ctx context.Context, req mvcc.TxnRequest) (mvcc.TxnResult, error)
	Compact(ctx context.Context, revision int64) error
	WatchFunc(ctx context.Context, req mvcc.WatchRequest, deliver func(mvcc.WatchBatch) bool) (done <-chan struct{})
	RequestProgress()

	GrantLease(ctx context.Context, id, ttlSeconds int64) (mvcc.Lease, error)
	RevokeLease(ctx context.Context, id int64) (revision int64, err error)
	RenewLease(ctx context.Context, id int64) (raftstore.LeaseStatus, error)
	LeaseTimeToLive(ctx context.Context, id int64) (raftstore.LeaseStatus, error)
	LeaseKeys(ctx context.Context, id int64) ([][]byte, error)
	Leases(ctx context.Context) ([]mvcc.Lease, error)

	ID() string
	Leader() raftstore.Peer
	LocalMembers() []raftstore.MemberInfo
	AddMember(ctx context.Context, id, address string) error
	AddLearner(ctx context.Context, id, address string) error
	PromoteMember(ctx context.Context, id string) error
	RemoveMember(ctx context.Context, id string) error
	UpdateMember(ctx context.Context, id, address string) error

	Alarms() []raftstore.Alarm
	ClearAlarm(ctx context.Context, a raftstore.Alarm) error
	Status() (raftstore.Status, error)
	Term() uint64
	HasLeader() bool
	MoveLeader(ctx context.Context, id string) error
	HashAt(revision int64) (mvcc.Hash, int64, error)
	WriteSnapshot(w io.Writer) error
	Defragment(ctx context.Context) error
}

var _ Member = (*raftstore.Member)(nil)
