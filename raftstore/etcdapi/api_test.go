package etcdapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"kontiki/raftstore"
)

// TestErrorsAreEtcds: every sentinel of the store has the answer that etcd gives, wrapped or not.
func TestErrorsAreEtcds(t *testing.T) {
	for _, a := range answers {
		require.Equal(t, a.answer, toStatus(fmt.Errorf("deep inside: %w", a.err)))
		require.NotEqual(t, codes.DeadlineExceeded, status.Code(toStatus(a.err)))
	}
	unknown := fmt.Errorf("%w: %w", raftstore.ErrUnknownOutcome, context.DeadlineExceeded)
	require.Equal(t, rpctypes.ErrGRPCTimeout, toStatus(unknown))
	require.Equal(t, codes.Unknown, status.Code(toStatus(errors.New("disk on fire"))))
	require.NoError(t, toStatus(nil))
}

// TestOverlaps_KV05: a put inside a delete is refused, however the delete is written.
func TestOverlaps_KV05(t *testing.T) {
	c := start(t, 1, Config{})[0].client(t)
	ctx := within(t, time.Minute)
	for _, del := range []clientv3.Op{
		clientv3.OpDelete("k1"), clientv3.OpDelete("k", clientv3.WithPrefix()),
		clientv3.OpDelete("k", clientv3.WithRange("l")), clientv3.OpDelete("k", clientv3.WithFromKey()),
	} {
		_, err := c.Txn(ctx).Then(del, clientv3.OpPut("k1", "v")).Commit()
		require.ErrorIs(t, err, rpctypes.ErrDuplicateKey)
		_, err = c.Txn(ctx).Then(del, clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("k1", "v")}, nil)).Commit()
		require.ErrorIs(t, err, rpctypes.ErrDuplicateKey)
	}
	res, err := c.Get(ctx, "k", clientv3.WithFromKey())
	require.NoError(t, err)
	require.EqualValues(t, 1, res.Header.Revision, "what is refused takes no revision")
}

func TestAuthIsRefusedWithAReason(t *testing.T) {
	c := start(t, 1, Config{})[0].client(t)
	_, err := c.AuthEnable(within(t, time.Minute))
	require.Equal(t, codes.Unimplemented, status.Code(err))
	require.ErrorContains(t, err, "certificate")
}

// TestPeriodicProgress_KV09: a watch on a key that nobody writes hears of progress, also when nothing at
// all happens, and when only others write.
func TestPeriodicProgress_KV09(t *testing.T) {
	m := start(t, 1, Config{ProgressInterval: 50 * time.Millisecond})[0]
	ctx := within(t, time.Minute)
	c := m.client(t)
	put, err := c.Put(ctx, "other", "1")
	require.NoError(t, err)
	out := c.Watch(ctx, "quiet", clientv3.WithRev(put.Header.Revision), clientv3.WithProgressNotify())
	progress := func(revision int64) {
		for w := range out {
			require.True(t, w.IsProgressNotify())
			if w.Header.Revision >= revision {
				return
			}
		}
	}
	progress(put.Header.Revision)
	put, err = c.Put(ctx, "other", "2")
	require.NoError(t, err)
	progress(put.Header.Revision)
}

// TestStuckWatcher_KV10: a client that does not read holds up nobody but itself, not even a writer.
func TestStuckWatcher_KV10(t *testing.T) {
	m := start(t, 1, Config{})[0]
	ctx := within(t, time.Minute)
	stuck, err := pb.NewWatchClient(m.client(t).ActiveConnection()).Watch(ctx)
	require.NoError(t, err)
	for range 20 {
		require.NoError(t, stuck.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 1, PrevKv: true},
		}}))
	}
	other := m.client(t)
	out := other.Watch(ctx, "k", clientv3.WithRev(1))
	value := strings.Repeat("v", 100_000)
	for next := int64(2); next <= 300; {
		_, err := other.Put(ctx, "k", value)
		require.NoError(t, err)
		for _, e := range (<-out).Events {
			require.Equal(t, next, e.Kv.ModRevision)
			next++
		}
	}
	// When it reads at last, it has missed nothing.
	seen := map[int64]int64{}
	for complete := 0; complete < 20; {
		r, err := stuck.Recv()
		require.NoError(t, err)
		require.False(t, r.Canceled, r.CancelReason)
		for _, e := range r.Events {
			require.Equal(t, max(seen[r.WatchId], 1)+1, e.Kv.ModRevision)
			if seen[r.WatchId] = e.Kv.ModRevision; e.Kv.ModRevision == 300 {
				complete++
			}
		}
	}
}

// TestCancelWhileBusy: after the answer to a cancel nothing comes of the watch, and its id is free.
func TestCancelWhileBusy(t *testing.T) {
	m := start(t, 1, Config{})[0]
	ctx := within(t, time.Minute)
	c := m.client(t)
	stream, err := pb.NewWatchClient(c.ActiveConnection()).Watch(ctx)
	require.NoError(t, err)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = c.Put(ctx, "k", "v") // the test's end may cut it short
			}
		}
	}()
	for range 50 {
		require.NoError(t, stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: []byte("k"), WatchId: 7, StartRevision: 2},
		}}))
		require.NoError(t, stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
			CancelRequest: &pb.WatchCancelRequest{WatchId: 7},
		}}))
		r, err := stream.Recv()
		require.NoError(t, err)
		require.True(t, r.Created && !r.Canceled)
		for next := int64(2); !r.Canceled; {
			r, err = stream.Recv()
			require.NoError(t, err)
			for _, e := range r.Events {
				require.Equal(t, next, e.Kv.ModRevision)
				next++
			}
		}
	}
}

func TestFragmentsKeepAllAndStayBelowTheLimit(t *testing.T) {
	for _, sizes := range [][]int{{10}, {1000, 1000, 1000}, {500, 1500, 500, 10, 10}, {5000, 5000}, {1, 2, 3}} {
		r := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: 9}, WatchId: 3}
		for i, n := range sizes {
			r.Events = append(r.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte{byte(i)}, Value: make([]byte, n)}})
		}
		parts := fragments(r, 2000)
		var events []*mvccpb.Event
		for i, p := range parts {
			require.Equal(t, i < len(parts)-1, p.Fragment)
			require.Equal(t, r.WatchId, p.WatchId)
			require.NotEmpty(t, p.Events)
			require.True(t, proto.Size(p) < 2000 || len(p.Events) == 1)
			events = append(events, p.Events...)
		}
		require.Equal(t, r.Events, events)
	}
}

func TestUnknownCompareIsRefused(t *testing.T) {
	kv := pb.NewKVClient(start(t, 1, Config{})[0].client(t).ActiveConnection())
	for _, c := range []*pb.Compare{{Key: []byte("k"), Target: 99}, {Key: []byte("k"), Result: 99}} {
		_, err := kv.Txn(within(t, time.Minute), &pb.TxnRequest{Compare: []*pb.Compare{c}})
		require.Equal(t, codes.InvalidArgument, status.Code(err))
	}
}

// TestNoSpaceAlarm: a store that is larger than its quota takes no puts, says why, and takes them again
// when it was made smaller and the alarm was ended, as an operator of etcd does it.
func TestNoSpaceAlarm(t *testing.T) {
	m := start(t, 1, Config{}, func(c *raftstore.Config) { c.QuotaBytes = 4 << 20 })[0]
	ctx := within(t, time.Minute)
	c := m.client(t)
	value := strings.Repeat("v", 100_000)
	require.Eventually(t, func() bool {
		_, err := c.Put(ctx, "k", value)
		if err != nil {
			require.ErrorIs(t, err, rpctypes.ErrNoSpace)
		}
		return err != nil
	}, time.Minute, time.Millisecond)
	st, err := c.Status(ctx, m.endpoint)
	require.NoError(t, err)
	require.Len(t, st.Errors, 1)
	alarms, err := c.AlarmList(ctx)
	require.NoError(t, err)
	require.Len(t, alarms.Alarms, 1)
	require.Equal(t, pb.AlarmType_NOSPACE, alarms.Alarms[0].Alarm)
	require.Equal(t, st.Header.MemberId, alarms.Alarms[0].MemberID)

	_, err = c.Compact(ctx, st.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	_, err = c.Defragment(ctx, m.endpoint)
	require.NoError(t, err)
	ended, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	require.NoError(t, err)
	require.Len(t, ended.Alarms, 1)
	_, err = c.Put(ctx, "k", "small")
	require.NoError(t, err)
}
