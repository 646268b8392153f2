package etcdapi

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"kontiki/mvcc"
)

// From etcd's requests, which were checked, to the store's.

func rangeRequest(r *pb.RangeRequest) mvcc.RangeRequest {
	return mvcc.RangeRequest{
		Key: r.Key, End: r.RangeEnd, Revision: r.Revision, Limit: r.Limit,
		KeysOnly: r.KeysOnly, CountOnly: r.CountOnly,
		MinModRevision: r.MinModRevision, MaxModRevision: r.MaxModRevision,
		MinCreateRevision: r.MinCreateRevision, MaxCreateRevision: r.MaxCreateRevision,
		SortBy:     mvcc.SortTarget(r.SortTarget), // the numbers are the same
		Descending: r.SortOrder == pb.RangeRequest_DESCEND,
	}
}

func putRequest(r *pb.PutRequest) *mvcc.PutRequest {
	return &mvcc.PutRequest{
		Key: r.Key, Value: r.Value, Lease: r.Lease,
		PrevKV: r.PrevKv, IgnoreValue: r.IgnoreValue, IgnoreLease: r.IgnoreLease,
	}
}

func deleteRequest(r *pb.DeleteRangeRequest) *mvcc.DeleteRequest {
	return &mvcc.DeleteRequest{Key: r.Key, End: r.RangeEnd, PrevKV: r.PrevKv}
}

func txnRequest(r *pb.TxnRequest) mvcc.TxnRequest {
	req := mvcc.TxnRequest{Then: operations(r.GetSuccess()), Else: operations(r.GetFailure())}
	for _, c := range r.GetCompare() {
		req.Compare = append(req.Compare, compare(c))
	}
	return req
}

func operations(ops []*pb.RequestOp) (list []mvcc.Op) {
	for _, op := range ops {
		var o mvcc.Op
		switch v := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			r := rangeRequest(v.RequestRange)
			o.Range = &r
		case *pb.RequestOp_RequestPut:
			o.Put = putRequest(v.RequestPut)
		case *pb.RequestOp_RequestDeleteRange:
			o.Delete = deleteRequest(v.RequestDeleteRange)
		case *pb.RequestOp_RequestTxn:
			t := txnRequest(v.RequestTxn)
			o.Txn = &t
		}
		list = append(list, o)
	}
	return list
}

var compareTargets = map[pb.Compare_CompareTarget]mvcc.CompareTarget{
	pb.Compare_VERSION: mvcc.CompareVersion,
	pb.Compare_CREATE:  mvcc.CompareCreateRevision,
	pb.Compare_MOD:     mvcc.CompareModRevision,
	pb.Compare_LEASE:   mvcc.CompareLease,
	pb.Compare_VALUE:   mvcc.CompareValue,
}

// noTarget is refused by mvcc.
const noTarget = mvcc.CompareTarget(255)

func compare(c *pb.Compare) mvcc.Compare {
	target, ok := compareTargets[c.Target]
	if !ok {
		target = noTarget
	}
	m := mvcc.Compare{Key: c.Key, End: c.RangeEnd, Target: target, Result: mvcc.CompareResult(c.Result)}
	switch target {
	case mvcc.CompareVersion:
		m.Number = c.GetVersion()
	case mvcc.CompareCreateRevision:
		m.Number = c.GetCreateRevision()
	case mvcc.CompareModRevision:
		m.Number = c.GetModRevision()
	case mvcc.CompareLease:
		m.Number = c.GetLease()
	case mvcc.CompareValue:
		m.Value = c.GetValue()
	}
	return m
}
