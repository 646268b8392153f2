package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// Txn runs a transaction. One that writes nothing is a read and may be sent again; any other is sent at
// most once, and if it was sent and etcd does not say what became of it, the error is
// raftstore.ErrUnknownOutcome.
func (s *Store) Txn(ctx context.Context, req mvcc.TxnRequest) (mvcc.TxnResult, error) {
	if err := req.Validate(); err != nil {
		return mvcc.TxnResult{}, err
	}
	request := txnRequest(&req)
	var answer *pb.TxnResponse
	var unknown error
	send := func(ctx context.Context) (err error) {
		answer, err = s.kv.Txn(ctx, request, callOptions...)
		return err
	}
	if req.ReadOnly() {
		if err := s.retry(ctx, send); err != nil {
			return mvcc.TxnResult{}, err
		}
		return txnResult(answer), nil
	}
	err := s.attempt(ctx, func(ctx context.Context) (again bool, err error) {
		var sent sent
		err = send(sent.watch(ctx))
		switch {
		case err == nil:
			return false, nil
		case sent.Load() && !refused(err):
			unknown = fmt.Errorf("%w: %s", raftstore.ErrUnknownOutcome, rpctypes.ErrorDesc(err))
			return false, err
		}
		return transient(err), err // it did not happen
	})
	if unknown != nil {
		err = unknown
	}
	if err != nil {
		return mvcc.TxnResult{}, err
	}
	return txnResult(answer), nil
}
