package compat

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func (s *session) grant(id, ttl int64) {
	answer, err := s.lease.LeaseGrant(s.ctx, &pb.LeaseGrantRequest{ID: id, TTL: ttl})
	s.told("grant", answer, err)
}

func (s *session) revoke(id int64) {
	answer, err := s.lease.LeaseRevoke(s.ctx, &pb.LeaseRevokeRequest{ID: id})
	s.told("revoke", answer, err)
}

// timeToLive notes a lease without the time that is left, which is checked to be sensible.
func (s *session) timeToLive(id int64) {
	answer, err := s.lease.LeaseTimeToLive(s.ctx, &pb.LeaseTimeToLiveRequest{ID: id, Keys: true})
	if err == nil && answer.GrantedTTL > 0 {
		require.Positive(s, answer.TTL)
		require.LessOrEqual(s, answer.TTL, answer.GrantedTTL)
		answer.TTL = 0
		slices.SortFunc(answer.Keys, bytes.Compare) // etcd has them in any order
	}
	s.told("time to live", answer, err)
}

func (s *session) leases() {
	answer, err := s.lease.LeaseLeases(s.ctx, &pb.LeaseLeasesRequest{})
	s.told("leases", answer, err)
}

func (s *session) keepAlive(ids ...int64) {
	stream, err := s.lease.LeaseKeepAlive(s.ctx)
	require.NoError(s, err)
	for _, id := range ids {
		require.NoError(s, stream.Send(&pb.LeaseKeepAliveRequest{ID: id}))
		answer, err := stream.Recv()
		s.told("keep alive", answer, err)
	}
	require.NoError(s, stream.CloseSend())
}

func TestLeases_KV16(t *testing.T) {
	both(t, func(s *session) {
		attach := func(id int64) func(*pb.PutRequest) { return func(r *pb.PutRequest) { r.Lease = id } }
		s.grant(1, 1000)
		s.grant(1, 1000)
		s.grant(2, 2000)
		s.grant(3, 9_000_000_000)
		s.grant(4, 9_000_000_001)
		s.grant(5, 0)
		s.grant(6, -7)
		s.grant(7, 1)
		s.grant(-8, 1000)
		s.revoke(5)
		s.revoke(6)
		s.revoke(7)
		s.revoke(7)
		s.revoke(0)
		s.revoke(99)
		s.put("a", "1", attach(1))
		s.put("b", "1", attach(1))
		s.put("b", "1")
		s.put("c", "1", attach(1))
		s.put("c", "1", attach(2))
		s.put("d", "1", attach(-8))
		s.put("e", "1", attach(1))
		s.put("e", "2", func(r *pb.PutRequest) { r.IgnoreLease = true })
		s.put("f", "1", attach(99))
		for _, id := range []int64{1, 2, 3, -8, 0, 99} {
			s.timeToLive(id)
		}
		s.keepAlive(1, 2, -8, 0, 99)
		s.get("a", "\x00")
		w := s.watching()
		w.create("a", "\x00", prevKV)
		s.revoke(1)
		w.events(2)
		s.get("a", "\x00")
		s.txn(then(putOp("x", "1"), &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("y"), Lease: 2}}}))
		s.del("c", "")
		s.timeToLive(2)
		s.revoke(2)
		s.revoke(-8)
		s.revoke(3)
		s.leases()
		s.get("a", "\x00")
	})
}

func TestLeaseIDsAreChosen(t *testing.T) {
	both(t, func(s *session) {
		seen := map[int64]bool{}
		for range 3 {
			answer, err := s.lease.LeaseGrant(s.ctx, &pb.LeaseGrantRequest{TTL: 100})
			require.NoError(s, err)
			require.Positive(s, answer.ID)
			seen[answer.ID] = true
			answer.ID = 0
			s.told("grant", answer, nil)
		}
		require.Len(s, seen, 3)
		list, err := s.lease.LeaseLeases(s.ctx, &pb.LeaseLeasesRequest{})
		require.NoError(s, err)
		s.note("%d leases", len(list.Leases))
	})
}

func TestLeaseExpires(t *testing.T) {
	both(t, func(s *session) {
		s.grant(1, 2)
		s.put("a", "1", func(r *pb.PutRequest) { r.Lease = 1 })
		w := s.watching()
		w.create("a", "")
		w.events(1)
		s.get("a", "")
		s.timeToLive(1)
		s.keepAlive(1)
		s.revoke(1)
	})
}
