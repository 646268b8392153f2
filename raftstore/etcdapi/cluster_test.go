package etcdapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

// TestEveryMemberServes: what is written through one is read, watched and renewed through any other.
func TestEveryMemberServes(t *testing.T) {
	members := start(t, 3, Config{ClusterName: "c"})
	ctx := within(t, time.Minute)
	var clients []*clientv3.Client
	for _, m := range members {
		clients = append(clients, m.client(t))
	}
	for i, c := range clients {
		next := clients[(i+1)%3]
		lease, err := c.Grant(ctx, 60)
		require.NoError(t, err)
		key := fmt.Sprint("k", i)
		put, err := c.Put(ctx, key, "v", clientv3.WithLease(lease.ID))
		require.NoError(t, err)
		got, err := next.Get(ctx, key)
		require.NoError(t, err)
		require.Len(t, got.Kvs, 1)
		w := <-next.Watch(ctx, key, clientv3.WithRev(put.Header.Revision))
		require.Equal(t, "v", string(w.Events[0].Kv.Value))
		alive, err := next.KeepAliveOnce(ctx, lease.ID)
		require.NoError(t, err)
		require.EqualValues(t, 60, alive.TTL)
		ttl, err := clients[(i+2)%3].TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
		require.NoError(t, err)
		require.Equal(t, [][]byte{[]byte(key)}, ttl.Keys)
	}
	list := memberList(t, clients[0])
	leader := map[uint64]int{}
	for i, c := range clients {
		st, err := c.Status(ctx, members[i].endpoint)
		require.NoError(t, err)
		require.Equal(t, list.Header.ClusterId, st.Header.ClusterId)
		require.Equal(t, "name-"+members[i].ID(), list.Members[slices.IndexFunc(list.Members, func(m *pb.Member) bool { return m.ID == st.Header.MemberId })].Name)
		leader[st.Leader]++
	}
	require.Len(t, leader, 1, "all agree who leads")
}

// memberList returns the members once all that run have introduced themselves.
func memberList(t *testing.T, c *clientv3.Client) *clientv3.MemberListResponse {
	var list *clientv3.MemberListResponse
	require.Eventually(t, func() bool {
		var err error
		list, err = c.MemberList(t.Context())
		require.NoError(t, err)
		return !slices.ContainsFunc(list.Members, func(m *pb.Member) bool { return m.Name == "" })
	}, 20*time.Second, 10*time.Millisecond)
	return list
}

func TestMembershipThroughTheAPI(t *testing.T) {
	members := start(t, 3, Config{})
	ctx := within(t, time.Minute)
	c := members[0].client(t)
	list := memberList(t, c)
	require.Len(t, list.Members, 3)
	for _, m := range list.Members {
		require.Equal(t, "https://"+strings.TrimPrefix(m.Name, "name-")+".example:2379", m.ClientURLs[0])
		require.False(t, m.IsLearner)
	}
	added, err := c.MemberAddAsLearner(ctx, []string{"https://m9:2380"})
	require.NoError(t, err)
	require.True(t, added.Member.IsLearner)
	require.Empty(t, added.Member.Name, "it has not started")
	require.Len(t, added.Members, 4)
	_, err = c.MemberAdd(ctx, []string{"https://m9:2380"})
	require.ErrorIs(t, err, rpctypes.ErrPeerURLExist)
	_, err = c.MemberAdd(ctx, []string{"https://m9:2380", "https://m9:2381"})
	require.ErrorIs(t, err, rpctypes.ErrMemberBadURLs)
	_, err = c.MemberPromote(ctx, added.Member.ID)
	require.ErrorIs(t, err, rpctypes.ErrMemberLearnerNotReady)
	_, err = c.MemberPromote(ctx, list.Members[0].ID)
	require.ErrorIs(t, err, rpctypes.ErrMemberNotLearner)
	_, err = c.MemberUpdate(ctx, added.Member.ID, []string{"https://m8:2380"})
	require.NoError(t, err)
	_, err = c.MemberRemove(ctx, 12345)
	require.ErrorIs(t, err, rpctypes.ErrMemberNotFound)
	removed, err := c.MemberRemove(ctx, added.Member.ID)
	require.NoError(t, err)
	require.Len(t, removed.Members, 3)
}

func TestMoveLeader(t *testing.T) {
	members := start(t, 3, Config{})
	ctx := within(t, time.Minute)
	lead := members[0].Leader().ID
	for _, m := range members {
		if m.ID() == lead {
			continue
		}
		_, err := m.client(t).MoveLeader(ctx, memberID(m.ID()))
		require.ErrorIs(t, err, rpctypes.ErrNotLeader)
	}
	for _, m := range members {
		if m.ID() != lead {
			continue
		}
		_, err := m.client(t).MoveLeader(ctx, 12345)
		require.ErrorContains(t, err, "bad leader transferee")
		target := members[0].ID()
		if target == lead {
			target = members[1].ID()
		}
		_, err = m.client(t).MoveLeader(ctx, memberID(target))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return m.Leader().ID == target }, time.Minute, time.Millisecond)
	}
}

// TestWithoutQuorum: writes fail with a code that no client takes for its own deadline, serializable
// reads go on, and watches that want a leader end.
func TestWithoutQuorum(t *testing.T) {
	members := start(t, 3, Config{})
	ctx := within(t, time.Minute)
	c := members[0].client(t)
	_, err := c.Put(ctx, "k", "v")
	require.NoError(t, err)
	_, err = c.Get(ctx, "k") // this member has it now
	require.NoError(t, err)
	watched := c.Watch(clientv3.WithRequireLeader(ctx), "k")
	members[1].stop(t)
	members[2].stop(t)
	_, err = c.Put(ctx, "k", "w")
	var answer rpctypes.EtcdError
	require.ErrorAs(t, err, &answer)
	require.Equal(t, codes.Unavailable, answer.Code())
	require.NoError(t, ctx.Err(), "it was the server that gave up")
	got, err := c.Get(ctx, "k", clientv3.WithSerializable())
	require.NoError(t, err)
	require.Equal(t, "v", string(got.Kvs[0].Value))
	for w := range watched {
		if w.Err() != nil {
			require.ErrorIs(t, w.Err(), rpctypes.ErrNoLeader)
			break
		}
	}
	require.Eventually(t, func() bool { return !members[0].HasLeader() }, time.Minute, 10*time.Millisecond)
	_, err = c.Get(clientv3.WithRequireLeader(ctx), "k", clientv3.WithSerializable())
	require.ErrorIs(t, err, rpctypes.ErrNoLeader)
}

// TestWatchSurvivesItsMember: a client with several endpoints goes on with its watch elsewhere, and
// misses nothing.
func TestWatchSurvivesItsMember(t *testing.T) {
	members := start(t, 3, Config{})
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	defer cancel()
	first := members[0].client(t)
	first.SetEndpoints(members[0].endpoint, members[1].endpoint, members[2].endpoint)
	out := first.Watch(ctx, "k", clientv3.WithRev(1))
	writer := members[1].client(t)
	next := int64(2)
	for i := range 30 {
		if i == 10 {
			members[0].stop(t)
		}
		require.Eventually(t, func() bool {
			attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			_, err := writer.Put(attempt, "k", fmt.Sprint(i))
			return err == nil
		}, 30*time.Second, 10*time.Millisecond)
	}
	seen := 0
	for last := ""; last != "29"; {
		w := <-out
		require.NoError(t, w.Err())
		for _, e := range w.Events {
			require.Equal(t, next, e.Kv.ModRevision)
			next++
			seen++
			last = string(e.Kv.Value)
		}
	}
	require.GreaterOrEqual(t, seen, 30)
}
