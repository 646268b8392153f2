package etcdapi

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"

	"kontiki/mvcc"
)

// What etcd's front refuses before it looks at the store, in its order. Whether the operations of a
// transaction get in each other's way is for mvcc to say.

func (s *Server) checkSize(m proto.Message) error {
	if proto.Size(m) > s.config.MaxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

func checkRange(r *pb.RangeRequest) error {
	if len(r.GetKey()) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	_, order := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]
	_, target := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]
	if !order || !target {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

func checkPut(r *pb.PutRequest) error {
	switch {
	case len(r.GetKey()) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.IgnoreValue && len(r.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.GetKey()) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

// checkTxn checks a transaction that may have max operations: what the longest list of a level takes is
// not there for the levels below it.
func checkTxn(r *pb.TxnRequest, max int) error {
	most := 0
	for _, n := range []int{len(r.GetCompare()), len(r.GetSuccess()), len(r.GetFailure())} {
		if n > most {
			most = n
		}
	}
	if most > max {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.GetCompare() {
		if len(c.GetKey()) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, ops := range [][]*pb.RequestOp{r.GetSuccess(), r.GetFailure()} {
		for _, op := range ops {
			if err := checkOp(op, max-most); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp, max int) error {
	switch v := op.GetRequest().(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(v.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(v.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkDelete(v.RequestDeleteRange)
	case *pb.RequestOp_RequestTxn:
		return checkTxn(v.RequestTxn, max)
	default:
		return rpctypes.ErrGRPCKeyNotFound // so says etcd of an operation that is none
	}
}

// maxTxnOps is etcd's default of --max-txn-ops.
const maxTxnOps = mvcc.MaxTxnOps
