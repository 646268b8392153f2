package compat

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func TestMaintenance(t *testing.T) {
	both(t, func(s *session) {
		for range 5 {
			s.put("a", "1")
		}
		st, err := s.maintenance.Status(s.ctx, &pb.StatusRequest{})
		require.NoError(s, err)
		require.Equal(s, st.Header.MemberId, st.Leader)
		require.Positive(s, st.DbSize)
		require.Positive(s, st.DbSizeInUse)
		require.Positive(s, st.RaftIndex)
		s.note("version %s, errors %v", st.Version, st.Errors)
		s.compact(4)
		for _, rev := range []int64{0, 3, 5, 99} { // at 4 etcd says -1 for the compacted revision
			h, err := s.maintenance.HashKV(s.ctx, &pb.HashKVRequest{Revision: rev})
			if err == nil {
				require.NotZero(s, h.Hash)
				h.Hash = 0
			}
			s.told("hash", h, err)
		}
		h, err := s.maintenance.Hash(s.ctx, &pb.HashRequest{})
		require.NoError(s, err)
		require.NotZero(s, h.Hash)
		alarms, err := s.maintenance.Alarm(s.ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET})
		s.told("alarms", alarms, err)
		alarms, err = s.maintenance.Alarm(s.ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE})
		s.told("disarm", alarms, err)
		_, err = s.maintenance.Defragment(s.ctx, &pb.DefragmentRequest{})
		require.NoError(s, err)
		_, err = s.maintenance.MoveLeader(s.ctx, &pb.MoveLeaderRequest{TargetID: 12345})
		s.told("move leader", nil, err)
		s.get("a", "")
		health, err := healthpb.NewHealthClient(s.client.ActiveConnection()).Check(s.ctx, &healthpb.HealthCheckRequest{})
		s.told("health", health, err)
	})
}

func TestMembers(t *testing.T) {
	both(t, func(s *session) {
		require.Eventually(s, func() bool { // a member says its name soon after its start
			list, err := s.cluster.MemberList(s.ctx, &pb.MemberListRequest{})
			return err == nil && list.Members[0].Name != ""
		}, 20*time.Second, 10*time.Millisecond)
		for _, linearizable := range []bool{true, false} {
			list, err := s.cluster.MemberList(s.ctx, &pb.MemberListRequest{Linearizable: linearizable})
			require.NoError(s, err)
			require.Len(s, list.Members, 1)
			m := list.Members[0]
			require.Equal(s, list.Header.MemberId, m.ID)
			s.note("%s, learner %t, revision %d", m.Name, m.IsLearner, list.Header.Revision)
		}
	})
}

func TestSnapshotStream(t *testing.T) {
	both(t, func(s *session) {
		s.put("a", "1")
		r, err := s.client.Snapshot(s.ctx)
		require.NoError(s, err)
		b, err := io.ReadAll(r)
		require.NoError(s, err)
		content, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
		want := sha256.Sum256(content)
		require.True(s, bytes.Equal(want[:], sum))
		require.Zero(s, len(content)%512, "etcdctl checks that this is a database's size")
		s.note("snapshot")
	})
}

func TestRequireLeader(t *testing.T) {
	both(t, func(s *session) {
		ctx := clientv3.WithRequireLeader(s.ctx)
		_, err := s.client.Put(ctx, "a", "1")
		s.clientErr("put", err)
		watched, cancel := context.WithCancel(ctx)
		defer cancel()
		for r := range s.client.Watch(watched, "a", clientv3.WithRev(1)) {
			s.note("%d events", len(r.Events))
			cancel()
		}
	})
}
