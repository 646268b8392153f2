package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

const (
	// grace is what a lease may outlive its TTL by, on a leader that stays.
	grace = lessorTick + 100*time.Millisecond
	// perElection is what it gains by an election, if leaders stay for a few seconds (docs/etcd-api.md).
	perElection = 1100 * time.Millisecond
)

func putLeased(key string, lease int64) mvcc.TxnRequest {
	return mvcc.TxnRequest{Then: []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte(key), Value: []byte("v"), Lease: lease}}}}
}

// leased grants a lease and attaches keys to it.
func leased(t *testing.T, m *Member, ttl int64, keys ...string) int64 {
	t.Helper()
	l, err := m.GrantLease(t.Context(), 0, ttl)
	require.NoError(t, err)
	for _, key := range keys {
		_, err := m.Txn(t.Context(), putLeased(key, l.ID))
		require.NoError(t, err)
	}
	return l.ID
}

// deletes collects the deletes of a key until the watch is ended.
func deletes(ctx context.Context, m *Member, key string) (seen func() []time.Time) {
	var mu sync.Mutex
	var times []time.Time
	out := m.Watch(ctx, mvcc.WatchRequest{Key: []byte(key), NoPut: true})
	go func() {
		for b := range out {
			for range b.Events {
				mu.Lock()
				times = append(times, time.Now())
				mu.Unlock()
			}
		}
	}()
	return func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return times
	}
}

func TestLeaseExpires(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := deletes(ctx, c.members["a"], "k")
		begin := time.Now()
		id := leased(t, c.members["b"], 5, "k", "l")
		time.Sleep(2 * time.Second)
		for _, name := range names { // on every member, leader or not
			s, err := c.members[name].LeaseTimeToLive(t.Context(), id)
			require.NoError(t, err)
			require.EqualValues(t, 5, s.TTLSeconds)
			require.InDelta(t, 3, s.Remaining.Seconds(), 0.5)
			keys, err := c.members[name].LeaseKeys(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, [][]byte{[]byte("k"), []byte("l")}, keys)
		}
		s, err := c.members["c"].RenewLease(t.Context(), id)
		require.NoError(t, err)
		require.InDelta(t, 5, s.Remaining.Seconds(), 0.5)
		time.Sleep(5*time.Second + grace)
		require.Len(t, gone(), 1)
		require.InDelta(t, 7, gone()[0].Sub(begin).Seconds(), 1)
		_, err = c.members["a"].RenewLease(t.Context(), id)
		require.ErrorIs(t, err, mvcc.ErrLeaseNotFound)
		_, err = c.members["a"].RevokeLease(t.Context(), id)
		require.ErrorIs(t, err, mvcc.ErrLeaseNotFound)
		_, err = c.members["b"].Txn(t.Context(), putLeased("k", id))
		require.ErrorIs(t, err, mvcc.ErrLeaseNotFound)
		all, err := c.members["c"].Leases(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
		c.same()
	})
}

// TestLiveLeasesSurvive_KV14: owners that renew lose nothing while the leader dies, there is none for
// four seconds, and leaders change.
func TestLiveLeasesSurvive_KV14(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		var ids []int64
		for i := range 10 {
			ids = append(ids, leased(t, c.members["a"], 5, fmt.Sprint("k", i)))
		}
		stop := make(chan struct{})
		var owners sync.WaitGroup
		for _, id := range ids {
			owners.Go(func() { renewFor(t, stop, id, c.members["a"], c.members["b"], c.members["c"]) })
		}
		check := func() {
			res, err := c.members["a"].Range(t.Context(), mvcc.RangeRequest{Key: []byte("k"), End: []byte("l")})
			require.NoError(t, err)
			require.Len(t, res.KVs, 10)
		}
		time.Sleep(3 * time.Second)
		c.network.Partition([]string{"a"}, []string{"b"}, []string{"c"})
		time.Sleep(4 * time.Second)
		c.network.Heal()
		c.ready()
		check()
		for range 6 {
			time.Sleep(3 * time.Second)
			require.NoError(t, c.leader(names...).raft.LeadershipTransfer().Error())
			c.ready()
			check()
		}
		close(stop)
		owners.Wait()
		time.Sleep(6 * time.Second)
		all, err := c.members["a"].Leases(t.Context())
		require.NoError(t, err)
		require.Empty(t, all, "and without owners they go")
	})
}

// renewFor renews a lease every two seconds, on one member after the other, as a client does.
func renewFor(t *testing.T, stop chan struct{}, id int64, members ...*Member) {
	for i := 0; ; i++ {
		for attempt := i; ; attempt++ {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err := members[attempt%len(members)].RenewLease(ctx, id)
			cancel()
			if err == nil {
				break
			}
			if errors.Is(err, mvcc.ErrLeaseNotFound) {
				t.Errorf("lease %x was lost", id)
				return
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-stop:
				return
			}
		}
		select {
		case <-time.After(2 * time.Second):
		case <-stop:
			return
		}
	}
}

// TestDeadLeasesGo_KV14: nobody renews, and the leader changes every few seconds. Elections do not keep
// a lease alive; neither do restarts of everything.
func TestDeadLeasesGo_KV14(t *testing.T) {
	for _, ttl := range []int64{5, 20} {
		for _, how := range []string{"transfer", "restart"} {
			dir := t.TempDir()
			t.Run(fmt.Sprint(ttl, how), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, dir, nil)
					defer c.close()
					leased(t, c.members["a"], ttl, "k")
					begin, leaderless := time.Now(), time.Duration(0)
					for rounds := 0; ; rounds++ {
						res, err := c.members["a"].Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
						require.NoError(t, err)
						if len(res.KVs) == 0 {
							break
						}
						allowed := time.Duration(ttl)*time.Second + grace + time.Duration(rounds)*perElection + leaderless
						require.Less(t, time.Since(begin), allowed, "kept alive by %d elections", rounds)
						time.Sleep(3 * time.Second)
						over := time.Now()
						if how == "transfer" {
							require.NoError(t, c.leader(names...).raft.LeadershipTransfer().Error())
						} else {
							c.close()
							for _, name := range names {
								c.start(name)
							}
						}
						c.ready()
						leaderless += time.Since(over)
					}
					require.Greater(t, time.Since(begin), time.Duration(ttl)*time.Second-grace)
				})
			})
		}
	}
}

// TestExpiryIsRetried_KV15: the leader is cut off when the time is up. The key is deleted soon after the
// others have a leader, once, and what is left is never negative.
func TestExpiryIsRetried_KV15(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := deletes(ctx, c.members["a"], "k")
		id := leased(t, c.members["a"], 5, "k")
		time.Sleep(3 * time.Second)
		c.network.Partition([]string{"a"}, []string{"b"}, []string{"c"})
		time.Sleep(20 * time.Second)
		require.Empty(t, gone())
		c.network.Heal()
		healed := time.Now()
		for len(gone()) == 0 {
			require.Less(t, time.Since(healed), 15*time.Second)
			s, err := c.members["b"].LeaseTimeToLive(t.Context(), id)
			if err == nil {
				require.GreaterOrEqual(t, s.Remaining, time.Duration(0))
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Less(t, time.Since(healed), 9*time.Second, "an election, and at most the 5 s")
		time.Sleep(10 * time.Second)
		require.Len(t, gone(), 1)
		c.same()
	})
}

// TestLeaseSurvivesRestart: a member that is alone continues with a lease where it was.
func TestLeaseSurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: dir, NodeID: "a", Bootstrap: true, Log: quiet()}
		m := openMember(t, cfg)
		time.Sleep(time.Second) // the lessor is there when the lease is granted
		id := leased(t, m, 60, "k")
		time.Sleep(40 * time.Second)
		require.NoError(t, m.Close())
		m = openMember(t, cfg)
		defer func() { require.NoError(t, m.Close()) }()
		s, err := m.LeaseTimeToLive(t.Context(), id)
		require.NoError(t, err)
		require.InDelta(t, 21, s.Remaining.Seconds(), 2)
		_, err = m.RenewLease(t.Context(), id)
		require.NoError(t, err)
		stored, ok := m.store.Lease(id)
		require.True(t, ok)
		require.Zero(t, stored.RemainingMillis, "a renewal is written down if less was")
		time.Sleep(60*time.Second + grace)
		res, err := m.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
		require.NoError(t, err)
		require.Empty(t, res.KVs)
	})
}

// TestRenewalsKeepToTheirTime: who renews waits no longer than its context says, whatever the lessor waits for.
func TestRenewalsKeepToTheirTime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := openMember(t, Config{Dir: dir, NodeID: "a", Bootstrap: true, Log: quiet()})
		defer func() { require.NoError(t, m.Close()) }()
		id := leased(t, m, 60)
		for what, held := range map[string]turn{"a new term begins": m.lessor.promoting, "checkpoints are being written": m.lessor.order} {
			require.NoError(t, held.take(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			begin := time.Now()
			_, err := m.RenewLease(ctx, id)
			require.ErrorIs(t, err, context.DeadlineExceeded, what)
			require.Equal(t, 100*time.Millisecond, time.Since(begin), what)
			cancel()
			held.pass()
		}
		_, err := m.RenewLease(t.Context(), id)
		require.NoError(t, err)
	})
}

// TestLeaseUnknownToOldLeader: a leader that does not know yet that it has been replaced does not say that a lease
// of its successor's is gone.
func TestLeaseUnknownToOldLeader(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, dir, nil)
		defer c.close()
		old := c.leader(names...)
		_, err := old.lessor.lead(t.Context())
		require.NoError(t, err)
		c.network.Partition([]string{old.cfg.NodeID})
		_, err = old.lessor.renew(t.Context(), 99)
		require.ErrorIs(t, err, ErrNotLeader)
		require.NotErrorIs(t, err, mvcc.ErrLeaseNotFound)
		c.network.Heal()
		c.ready()
		_, err = old.RenewLease(t.Context(), 99)
		require.ErrorIs(t, err, mvcc.ErrLeaseNotFound)
	})
}

// TestRenewalAfterCheckpoint: what is written down before a renewal comes into the log before it, so the next
// leader finds the whole TTL.
func TestRenewalAfterCheckpoint(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := openMember(t, Config{Dir: dir, NodeID: "a", Bootstrap: true, Log: quiet()})
		defer func() { require.NoError(t, m.Close()) }()
		time.Sleep(time.Second) // the lessor is there when the lease is granted
		id := leased(t, m, 60)
		for range 50 {
			time.Sleep(31 * time.Second) // a checkpoint is due
			_, err := m.RenewLease(t.Context(), id)
			require.NoError(t, err)
			var group sync.WaitGroup
			group.Go(func() { m.lessor.checkpoint(t.Context(), m.raft.CurrentTerm()) })
			_, err = m.RenewLease(t.Context(), id)
			require.NoError(t, err)
			group.Wait()
			stored, ok := m.store.Lease(id)
			require.True(t, ok)
			require.Zero(t, stored.RemainingMillis)
		}
	})
}

// TestLeaseClock: neither a clock that jumps nor a leader that stands still ends a lease early, and an expired
// lease stays expired.
func TestLeaseClock(t *testing.T) {
	wall := time.Now()
	c := newSteadyClock(func() time.Time { return wall })
	begin := c.now()
	wall = wall.Add(400 * time.Millisecond)
	require.Equal(t, 400*time.Millisecond, c.now().Sub(begin))
	wall = wall.Add(-time.Hour)
	require.Equal(t, 400*time.Millisecond, c.now().Sub(begin), "does not go back")
	wall = wall.Add(300 * time.Millisecond)
	require.Equal(t, 700*time.Millisecond, c.now().Sub(begin), "and goes on from there")
	wall = wall.Add(time.Hour)
	require.Equal(t, 700*time.Millisecond+maxLook, c.now().Sub(begin), "goes on by little at a time")

	timer := freshTimer(mvcc.Lease{ID: 1, TTLSeconds: 2}, begin)
	require.True(t, timer.expired(begin.Add(2*time.Second)))
	require.True(t, timer.expired(begin), "for whoever looked at the clock earlier, too")
}

// TestCheckpointsAreFew: a lease that is renewed as clients do costs no writes; one that is not costs
// fewer and fewer.
func TestCheckpointsAreFew(t *testing.T) {
	now := time.Now()
	timer := freshTimer(mvcc.Lease{ID: 1, TTLSeconds: 60}, now)
	for range 100 {
		now = now.Add(20 * time.Second)
		require.False(t, timer.checkpointDue(now))
		timer.renew(now)
	}
	var at []int
	for second := range 60 {
		if moment := now.Add(time.Duration(second) * time.Second); timer.checkpointDue(moment) {
			at = append(at, second)
			require.EqualValues(t, (60-second)*1000, timer.checkpoint(moment))
		}
	}
	require.Equal(t, []int{30, 31, 32, 33, 34, 35, 37, 39, 42, 45, 49, 54}, at)
	require.True(t, timer.expired(now.Add(time.Minute)))
	require.Zero(t, timer.remaining(now.Add(time.Hour)))
}
