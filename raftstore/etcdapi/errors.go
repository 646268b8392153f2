package etcdapi

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// Reasons with which a watch is refused; etcd has no constants for them in its API.
const (
	reasonDuplicateWatch = "mvcc: duplicate watch ID provided on the WatchStream"
	reasonEmptyRange     = "mvcc: watcher range is empty"
)

// answers says what clients are told, in the words of etcd's rpctypes. The first match counts: an
// unknown outcome often has a context's error inside.
var answers = []struct{ err, answer error }{
	{raftstore.ErrUnknownOutcome, rpctypes.ErrGRPCTimeout},
	{raftstore.ErrBadTransferee, rpctypes.ErrGRPCBadLeaderTransferee},
	{raftstore.ErrMemberNotFound, rpctypes.ErrGRPCMemberNotFound},
	{raftstore.ErrMemberExists, rpctypes.ErrGRPCMemberExist},
	{raftstore.ErrAddressTaken, rpctypes.ErrGRPCPeerURLExist},
	{raftstore.ErrInvalidMember, rpctypes.ErrGRPCMemberBadURLs},
	{raftstore.ErrNotLearner, rpctypes.ErrGRPCMemberNotLearner},
	{raftstore.ErrLearnerNotReady, rpctypes.ErrGRPCLearnerNotReady},
	{raftstore.ErrNotEnoughMembers, rpctypes.ErrGRPCMemberNotEnoughStarted},
	{raftstore.ErrTransferFailed, rpctypes.ErrGRPCTimeoutDueToLeaderFail},
	{raftstore.ErrRemoved, rpctypes.ErrGRPCStopped},
	{raftstore.ErrNoSpace, rpctypes.ErrGRPCNoSpace},
	{raftstore.ErrNoLeader, rpctypes.ErrGRPCNoLeader},
	{raftstore.ErrNotLeader, rpctypes.ErrGRPCNotLeader},
	{raftstore.ErrTooLarge, rpctypes.ErrGRPCRequestTooLarge},
	{raftstore.ErrClosed, rpctypes.ErrGRPCStopped},
	{mvcc.ErrClosed, rpctypes.ErrGRPCStopped},
	{mvcc.ErrCorrupt, rpctypes.ErrGRPCCorrupt},
	{mvcc.ErrCompacted, rpctypes.ErrGRPCCompacted},
	{mvcc.ErrFutureRevision, rpctypes.ErrGRPCFutureRev},
	{mvcc.ErrDuplicateKey, rpctypes.ErrGRPCDuplicateKey},
	{mvcc.ErrEmptyKey, rpctypes.ErrGRPCEmptyKey},
	{mvcc.ErrKeyNotFound, rpctypes.ErrGRPCKeyNotFound},
	{mvcc.ErrValueProvided, rpctypes.ErrGRPCValueProvided},
	{mvcc.ErrLeaseProvided, rpctypes.ErrGRPCLeaseProvided},
	{mvcc.ErrTooManyOps, rpctypes.ErrGRPCTooManyOps},
	{mvcc.ErrInvalidOp, status.Error(codes.InvalidArgument, "etcdserver: invalid operation in txn request")},
	{mvcc.ErrLeaseNotFound, rpctypes.ErrGRPCLeaseNotFound},
	{mvcc.ErrLeaseExists, rpctypes.ErrGRPCLeaseExist},
	{mvcc.ErrLeaseTTL, rpctypes.ErrGRPCLeaseTTLTooLarge},
	{context.Canceled, rpctypes.ErrGRPCCanceled},
	// Never DeadlineExceeded: clientv3 takes that for its own deadline and sends writes again.
	{context.DeadlineExceeded, rpctypes.ErrGRPCTimeout},
}

// toStatus is the only place where errors become gRPC statuses.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return a.answer
		}
	}
	if _, ok := status.FromError(err); ok {
		return err // it was one already
	}
	return status.Error(codes.Unknown, err.Error())
}
