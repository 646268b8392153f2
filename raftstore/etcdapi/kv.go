package etcdapi

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"kontiki/mvcc"
)

// kvServer reads and writes.
type kvServer struct {
	pb.UnimplementedKVServer
	*Server
}

// Range implements pb.KVServer. Unless the read is serializable, this member first catches up with
// everything that was acknowledged, at an old revision too: it may have been compacted elsewhere.
func (k *kvServer) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if !r.Serializable {
		if err := k.member.CatchUp(ctx); err != nil {
			return nil, toStatus(err)
		}
	}
	res, err := k.member.LocalRange(rangeRequest(r))
	if err != nil {
		return nil, toStatus(err)
	}
	return rangeResponse(k.header.at(res.Revision), res), nil
}

// Put implements pb.KVServer.
func (k *kvServer) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	if err := checkPut(r); err != nil {
		return nil, err
	}
	if err := k.checkSize(r); err != nil {
		return nil, err
	}
	res, err := k.member.Txn(ctx, mvcc.TxnRequest{Then: []mvcc.Op{{Put: putRequest(r)}}})
	if err != nil {
		return nil, toStatus(err)
	}
	return putResponse(k.header.at(res.Revision), res.Ops[0].Put), nil
}

// DeleteRange implements pb.KVServer.
func (k *kvServer) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := checkDelete(r); err != nil {
		return nil, err
	}
	if err := k.checkSize(r); err != nil {
		return nil, err
	}
	res, err := k.member.Txn(ctx, mvcc.TxnRequest{Then: []mvcc.Op{{Delete: deleteRequest(r)}}})
	if err != nil {
		return nil, toStatus(err)
	}
	return deleteResponse(k.header.at(res.Revision), res.Ops[0].Delete), nil
}

// Txn implements pb.KVServer.
func (k *kvServer) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := checkTxn(r, maxTxnOps); err != nil {
		return nil, err
	}
	if err := k.checkSize(r); err != nil {
		return nil, err
	}
	req := txnRequest(r)
	var res mvcc.TxnResult
	var err error
	if serializable(r) {
		res, err = k.member.LocalTxn(&req)
	} else {
		res, err = k.member.Txn(ctx, req)
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return txnResponse(k.header.at(res.Revision), &res), nil
}

// serializable reports whether a transaction consists of nothing but serializable reads.
func serializable(r *pb.TxnRequest) bool {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if read := op.GetRequestRange(); read == nil || !read.Serializable {
				return false
			}
		}
	}
	return len(r.Success)+len(r.Failure) > 0
}

// sweepPoll is how often a physical compaction looks whether it is done.
const sweepPoll = 10 * time.Millisecond

// Compact implements pb.KVServer. With Physical it waits until the space is free, on this member.
func (k *kvServer) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	if err := k.member.Compact(ctx, r.Revision); err != nil {
		return nil, toStatus(err)
	}
	if r.Physical {
		if err := k.awaitSweep(ctx, r.Revision); err != nil {
			return nil, toStatus(err)
		}
	}
	return &pb.CompactionResponse{Header: k.header.now()}, nil
}

func (k *kvServer) awaitSweep(ctx context.Context, revision int64) error {
	if err := k.member.CatchUp(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(sweepPoll)
	defer tick.Stop()
	for {
		status, err := k.member.Status()
		if err != nil || status.Store.Swept >= revision {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
