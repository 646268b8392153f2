package etcdapi

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"kontiki/mvcc"
)

// From the store's results to etcd's answers.

func keyValue(kv mvcc.KeyValue) *mvccpb.KeyValue {
	p := &mvccpb.KeyValue{}
	setKeyValue(p, &kv)
	return p
}

func setKeyValue(p *mvccpb.KeyValue, kv *mvcc.KeyValue) {
	p.Key, p.Value, p.Lease = kv.Key, kv.Value, kv.Lease
	p.CreateRevision, p.ModRevision, p.Version = kv.CreateRevision, kv.ModRevision, kv.Version
}

// keyValues takes two pieces of memory, however many keys there are.
func keyValues(kvs []mvcc.KeyValue) []*mvccpb.KeyValue {
	list, all := make([]*mvccpb.KeyValue, len(kvs)), make([]mvccpb.KeyValue, len(kvs))
	for i := range kvs {
		list[i] = &all[i]
		setKeyValue(list[i], &kvs[i])
	}
	return list
}

func event(e mvcc.Event) *mvccpb.Event {
	p := &mvccpb.Event{Kv: keyValue(e.KV)}
	if e.Type == mvcc.DeleteEvent {
		p.Type = mvccpb.Event_DELETE
	}
	if e.PrevKV != nil {
		p.PrevKv = keyValue(*e.PrevKV)
	}
	return p
}

func rangeResponse(h *pb.ResponseHeader, r mvcc.RangeResult) *pb.RangeResponse {
	return &pb.RangeResponse{Header: h, Kvs: keyValues(r.KVs), More: r.More, Count: r.Count}
}

func putResponse(h *pb.ResponseHeader, r *mvcc.PutResult) *pb.PutResponse {
	p := &pb.PutResponse{Header: h}
	if r.PrevKV != nil {
		p.PrevKv = keyValue(*r.PrevKV)
	}
	return p
}

func deleteResponse(h *pb.ResponseHeader, r *mvcc.DeleteResult) *pb.DeleteRangeResponse {
	return &pb.DeleteRangeResponse{Header: h, Deleted: r.Deleted, PrevKvs: keyValues(r.PrevKVs)}
}

func txnResponse(h *pb.ResponseHeader, r *mvcc.TxnResult) *pb.TxnResponse {
	t := txnAnswer{revision: r.Revision, before: r.Revision}
	if writes(r) {
		t.before--
	}
	return t.txn(h, r)
}

// txnAnswer builds the answer to a transaction. etcd puts a revision into the header of each operation's
// answer: the transaction's from the first change on, and the one before until then.
type txnAnswer struct {
	revision int64
	before   int64
	wrote    bool
}

func (t *txnAnswer) txn(h *pb.ResponseHeader, r *mvcc.TxnResult) *pb.TxnResponse {
	p := &pb.TxnResponse{Header: h, Succeeded: r.Succeeded, Responses: make([]*pb.ResponseOp, len(r.Ops))}
	for i, op := range r.Ops {
		p.Responses[i] = t.op(op)
	}
	return p
}

func (t *txnAnswer) op(op mvcc.OpResult) *pb.ResponseOp {
	switch {
	case op.Range != nil:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: rangeResponse(t.header(), *op.Range)}}
	case op.Put != nil:
		t.wrote = true
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: putResponse(t.header(), op.Put)}}
	case op.Delete != nil:
		t.wrote = t.wrote || op.Delete.Deleted > 0
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: deleteResponse(t.header(), op.Delete)}}
	default:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: t.txn(&pb.ResponseHeader{}, op.Txn)}}
	}
}

func (t *txnAnswer) header() *pb.ResponseHeader {
	if t.wrote {
		return &pb.ResponseHeader{Revision: t.revision}
	}
	return &pb.ResponseHeader{Revision: t.before}
}

// writes reports whether a transaction has changed something.
func writes(r *mvcc.TxnResult) bool {
	for _, op := range r.Ops {
		if op.Put != nil || op.Delete != nil && op.Delete.Deleted > 0 || op.Txn != nil && writes(op.Txn) {
			return true
		}
	}
	return false
}
