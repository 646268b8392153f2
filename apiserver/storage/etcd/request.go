package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"kontiki/mvcc"
)

// The functions of this file word requests as etcd's API has them. Values of the enumerations are
// those of mvcc by name; a request that names others does not get here (mvcc.TxnRequest.Validate).

func rangeRequest(r *mvcc.RangeRequest) *pb.RangeRequest {
	return &pb.RangeRequest{
		Key: r.Key, RangeEnd: r.End, Revision: max(r.Revision, 0), Limit: r.Limit, KeysOnly: r.KeysOnly, CountOnly: r.CountOnly,
		MinModRevision: r.MinModRevision, MaxModRevision: r.MaxModRevision,
		MinCreateRevision: r.MinCreateRevision, MaxCreateRevision: r.MaxCreateRevision,
		SortTarget: sortTargets[r.SortBy], SortOrder: sortOrder(r),
	}
}

var sortTargets = map[mvcc.SortTarget]pb.RangeRequest_SortTarget{
	mvcc.SortByKey:            pb.RangeRequest_KEY,
	mvcc.SortByVersion:        pb.RangeRequest_VERSION,
	mvcc.SortByCreateRevision: pb.RangeRequest_CREATE,
	mvcc.SortByModRevision:    pb.RangeRequest_MOD,
	mvcc.SortByValue:          pb.RangeRequest_VALUE,
}

// sortOrder leaves key order, which needs no sorting, to the index: a sorted range is read whole
// before it is limited.
func sortOrder(r *mvcc.RangeRequest) pb.RangeRequest_SortOrder {
	switch {
	case r.Descending:
		return pb.RangeRequest_DESCEND
	case r.SortBy != mvcc.SortByKey:
		return pb.RangeRequest_ASCEND
	}
	return pb.RangeRequest_NONE
}

func txnRequest(r *mvcc.TxnRequest) *pb.TxnRequest {
	out := &pb.TxnRequest{Success: requestOps(r.Then), Failure: requestOps(r.Else)}
	for i := range r.Compare {
		out.Compare = append(out.Compare, compare(&r.Compare[i]))
	}
	return out
}

func requestOps(ops []mvcc.Op) []*pb.RequestOp {
	out := make([]*pb.RequestOp, 0, len(ops))
	for _, op := range ops {
		out = append(out, requestOp(op))
	}
	return out
}

func requestOp(op mvcc.Op) *pb.RequestOp {
	switch {
	case op.Range != nil:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: rangeRequest(op.Range)}}
	case op.Put != nil:
		p := op.Put
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{
			Key: p.Key, Value: p.Value, Lease: p.Lease, PrevKv: p.PrevKV, IgnoreValue: p.IgnoreValue, IgnoreLease: p.IgnoreLease,
		}}}
	case op.Delete != nil:
		d := op.Delete
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{
			Key: d.Key, RangeEnd: d.End, PrevKv: d.PrevKV,
		}}}
	default:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txnRequest(op.Txn)}}
	}
}

var compareResults = map[mvcc.CompareResult]pb.Compare_CompareResult{
	mvcc.Equal:    pb.Compare_EQUAL,
	mvcc.Greater:  pb.Compare_GREATER,
	mvcc.Less:     pb.Compare_LESS,
	mvcc.NotEqual: pb.Compare_NOT_EQUAL,
}

func compare(c *mvcc.Compare) *pb.Compare {
	out := &pb.Compare{Key: c.Key, RangeEnd: c.End, Result: compareResults[c.Result]}
	switch c.Target {
	case mvcc.CompareVersion:
		out.Target, out.TargetUnion = pb.Compare_VERSION, &pb.Compare_Version{Version: c.Number}
	case mvcc.CompareCreateRevision:
		out.Target, out.TargetUnion = pb.Compare_CREATE, &pb.Compare_CreateRevision{CreateRevision: c.Number}
	case mvcc.CompareModRevision:
		out.Target, out.TargetUnion = pb.Compare_MOD, &pb.Compare_ModRevision{ModRevision: c.Number}
	case mvcc.CompareLease:
		out.Target, out.TargetUnion = pb.Compare_LEASE, &pb.Compare_Lease{Lease: c.Number}
	case mvcc.CompareValue:
		out.Target, out.TargetUnion = pb.Compare_VALUE, &pb.Compare_Value{Value: c.Value}
	}
	return out
}

func watchRequest(r *mvcc.WatchRequest) *pb.WatchRequest {
	create := &pb.WatchCreateRequest{
		Key: r.Key, RangeEnd: r.End, StartRevision: r.StartRevision, PrevKv: r.PrevKV, ProgressNotify: r.Progress,
	}
	if r.NoPut {
		create.Filters = append(create.Filters, pb.WatchCreateRequest_NOPUT)
	}
	if r.NoDelete {
		create.Filters = append(create.Filters, pb.WatchCreateRequest_NODELETE)
	}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

func progressRequest() *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
}
