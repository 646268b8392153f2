package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"kontiki/mvcc"
)

func keyValue(kv *mvccpb.KeyValue) mvcc.KeyValue {
	return mvcc.KeyValue{
		Key: kv.Key, Value: kv.Value, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision,
		Version: kv.Version, Lease: kv.Lease,
	}
}

func keyValues(kvs []*mvccpb.KeyValue) []mvcc.KeyValue {
	if len(kvs) == 0 {
		return nil
	}
	out := make([]mvcc.KeyValue, 0, len(kvs))
	for _, kv := range kvs {
		out = append(out, keyValue(kv))
	}
	return out
}

func optionalKeyValue(kv *mvccpb.KeyValue) *mvcc.KeyValue {
	if kv == nil {
		return nil
	}
	out := keyValue(kv)
	return &out
}

func rangeResult(r *pb.RangeResponse) mvcc.RangeResult {
	return mvcc.RangeResult{Revision: r.Header.GetRevision(), KVs: keyValues(r.Kvs), Count: r.Count, More: r.More}
}

func txnResult(r *pb.TxnResponse) mvcc.TxnResult {
	return txnResultAt(r, r.Header.GetRevision())
}

// txnResultAt gives a nested transaction, and the ranges of one, the revision of the whole: etcd leaves
// their headers out, or empty.
func txnResultAt(r *pb.TxnResponse, revision int64) mvcc.TxnResult {
	out := mvcc.TxnResult{Revision: revision, Succeeded: r.Succeeded}
	for _, response := range r.Responses {
		out.Ops = append(out.Ops, opResult(response, revision))
	}
	return out
}

func opResult(r *pb.ResponseOp, revision int64) mvcc.OpResult {
	switch op := r.Response.(type) {
	case *pb.ResponseOp_ResponseRange:
		result := rangeResult(op.ResponseRange)
		result.Revision = revision
		return mvcc.OpResult{Range: &result}
	case *pb.ResponseOp_ResponsePut:
		return mvcc.OpResult{Put: &mvcc.PutResult{PrevKV: optionalKeyValue(op.ResponsePut.PrevKv)}}
	case *pb.ResponseOp_ResponseDeleteRange:
		return mvcc.OpResult{Delete: &mvcc.DeleteResult{
			Deleted: op.ResponseDeleteRange.Deleted, PrevKVs: keyValues(op.ResponseDeleteRange.PrevKvs),
		}}
	case *pb.ResponseOp_ResponseTxn:
		result := txnResultAt(op.ResponseTxn, revision)
		return mvcc.OpResult{Txn: &result}
	}
	return mvcc.OpResult{}
}
