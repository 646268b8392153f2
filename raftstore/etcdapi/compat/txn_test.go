package compat

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func putOp(key, value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value), PrevKv: true}}}
}

func deleteOp(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end), PrevKv: true}}}
}

func rangeOp(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

func getOp(key, end string) *pb.RequestOp {
	return rangeOp(&pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)})
}

func txnOp(t *pb.TxnRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: t}}
}

func then(ops ...*pb.RequestOp) *pb.TxnRequest { return &pb.TxnRequest{Success: ops} }

func TestTxnAnswers(t *testing.T) {
	both(t, func(s *session) {
		s.txn(&pb.TxnRequest{})
		s.txn(then(putOp("a", "1"), putOp("b", "1"), getOp("a", "z")))
		s.txn(then(getOp("a", "z"), deleteOp("none", ""), putOp("a", "2"), getOp("a", ""), deleteOp("b", ""), deleteOp("b", "")))
		s.txn(then(deleteOp("none", ""), getOp("a", "z")))
		s.txn(then(txnOp(then(getOp("a", ""))), txnOp(then(putOp("c", "1"))), getOp("c", "")))
		s.txn(&pb.TxnRequest{
			Compare: []*pb.Compare{{Key: []byte("none"), Target: pb.Compare_VERSION, Result: pb.Compare_GREATER}},
			Success: []*pb.RequestOp{putOp("never", "1")},
			Failure: []*pb.RequestOp{txnOp(&pb.TxnRequest{
				Compare: []*pb.Compare{{Key: []byte("a"), Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: []byte("2")}}},
				Success: []*pb.RequestOp{deleteOp("a", "c"), getOp("a", "z")},
				Failure: []*pb.RequestOp{putOp("never", "2")},
			})},
		})
		s.get("a", "\x00")
	})
}

func TestTxnsThatAreRefused_KV06(t *testing.T) {
	both(t, func(s *session) {
		s.put("a", "1")
		many := func(n int) (ops []*pb.RequestOp) {
			for i := range n {
				ops = append(ops, putOp(fmt.Sprint("k", i), "v"))
			}
			return ops
		}
		for _, r := range []*pb.TxnRequest{
			then(putOp("a", "1"), putOp("a", "2")),
			then(deleteOp("a", ""), deleteOp("a", "")),
			then(putOp("a", "1"), deleteOp("a", "")),
			then(deleteOp("a", ""), putOp("a", "1")),
			then(putOp("a1", "1"), deleteOp("a", "b")),
			then(deleteOp("a", "b"), txnOp(then(putOp("a1", "1")))),
			then(txnOp(then(putOp("a", "1"))), txnOp(then(putOp("a", "1")))),
			then(txnOp(then(deleteOp("a", "b"))), putOp("a1", "1")),
			then(txnOp(&pb.TxnRequest{Success: []*pb.RequestOp{putOp("a", "1")}, Failure: []*pb.RequestOp{putOp("a", "2")}})),
			then(txnOp(&pb.TxnRequest{Success: []*pb.RequestOp{putOp("x", "1")}, Failure: []*pb.RequestOp{deleteOp("x", "")}})),
			{Failure: []*pb.RequestOp{putOp("a", "1"), putOp("a", "2")}},
			then(putOp("a", "2"), &pb.RequestOp{}),
			then(putOp("", "2")),
			then(deleteOp("", "")),
			then(getOp("", "")),
			{Compare: []*pb.Compare{{}}},
			then(many(128)...),
			then(many(129)...),
			{Failure: many(129)},
			then(append(many(127), txnOp(then(putOp("x", "1"))))...),
			then(append(many(100), txnOp(then(putOp("x", "1"))))...),
			then(rangeOp(&pb.RangeRequest{Key: []byte("a"), SortOrder: 7})),
			then(&pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("none"), IgnoreValue: true}}}),
			then(putOp("b", "1"), &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("b2"), Lease: 99}}}),
			then(putOp("fresh", "1"), &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("fresh2"), IgnoreLease: true}}}),
		} {
			s.txn(r)
			s.get("a", "\x00", func(r *pb.RangeRequest) { r.CountOnly = true })
		}
	})
}

func TestCompares(t *testing.T) {
	both(t, func(s *session) {
		granted, err := s.lease.LeaseGrant(s.ctx, &pb.LeaseGrantRequest{ID: 3, TTL: 100})
		s.told("grant", granted, err)
		s.put("a", "1")
		s.put("a", "2", func(r *pb.PutRequest) { r.Lease = 3 })
		s.put("b", "2")
		unions := []func(*pb.Compare, int64){
			func(c *pb.Compare, n int64) {
				c.Target, c.TargetUnion = pb.Compare_VERSION, &pb.Compare_Version{Version: n}
			},
			func(c *pb.Compare, n int64) {
				c.Target, c.TargetUnion = pb.Compare_CREATE, &pb.Compare_CreateRevision{CreateRevision: n}
			},
			func(c *pb.Compare, n int64) {
				c.Target, c.TargetUnion = pb.Compare_MOD, &pb.Compare_ModRevision{ModRevision: n}
			},
			func(c *pb.Compare, n int64) { c.Target, c.TargetUnion = pb.Compare_LEASE, &pb.Compare_Lease{Lease: n} },
			func(c *pb.Compare, n int64) {
				c.Target, c.TargetUnion = pb.Compare_VALUE, &pb.Compare_Value{Value: []byte(fmt.Sprint(n))}
			},
			func(c *pb.Compare, n int64) { c.Target = pb.Compare_CompareTarget(n % 5) }, // without an operand
		}
		for _, keys := range [][2]string{{"a", ""}, {"b", ""}, {"none", ""}, {"a", "\x00"}, {"a", "z"}, {"x", "z"}, {"b", "a"}} {
			for _, set := range unions {
				for result := range int32(4) {
					for n := range int64(5) {
						c := &pb.Compare{Key: []byte(keys[0]), RangeEnd: []byte(keys[1]), Result: pb.Compare_CompareResult(result)}
						set(c, n)
						s.txn(&pb.TxnRequest{Compare: []*pb.Compare{c}})
					}
				}
			}
		}
	})
}
