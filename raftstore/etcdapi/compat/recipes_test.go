package compat

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/client/v3/namespace"
)

func (s *session) newSession(ttl int) *concurrency.Session {
	session, err := concurrency.NewSession(s.client, concurrency.WithTTL(ttl))
	require.NoError(s, err)
	return session
}

// TestLocks: eight holders of one lock, one at a time; who holds it and stops renewing loses it.
func TestLocks(t *testing.T) {
	both(t, func(s *session) {
		counter := 0 // guarded by the lock alone
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				session := s.newSession(30)
				defer session.Close()
				lock := concurrency.NewMutex(session, "/lock")
				for range 3 {
					if err := lock.Lock(s.ctx); err != nil {
						s.Errorf("lock: %v", err)
						return
					}
					counter++
					if err := lock.Unlock(s.ctx); err != nil {
						s.Errorf("unlock: %v", err)
					}
				}
			})
		}
		group.Wait()
		s.note("counter %d", counter)

		lost := s.newSession(2)
		require.NoError(s, concurrency.NewMutex(lost, "/lock").Lock(s.ctx))
		other := concurrency.NewMutex(s.newSession(30), "/lock")
		require.ErrorIs(s, other.TryLock(s.ctx), concurrency.ErrLocked)
		lost.Orphan() // it renews no more
		require.NoError(s, other.Lock(s.ctx))
		require.True(s, other.Header().Revision > 0)
	})
}

func TestElections(t *testing.T) {
	both(t, func(s *session) {
		one, two := s.newSession(30), s.newSession(30)
		first, second := concurrency.NewElection(one, "/election"), concurrency.NewElection(two, "/election")
		require.NoError(s, first.Campaign(s.ctx, "one"))
		leader, err := second.Leader(s.ctx)
		require.NoError(s, err)
		s.note("leader %s", leader.Kvs[0].Value)
		won := make(chan error, 1)
		go func() { won <- second.Campaign(s.ctx, "two") }()
		require.NoError(s, first.Proclaim(s.ctx, "still one"))
		observed := concurrency.NewElection(two, "/election").Observe(s.ctx)
		s.note("observed %s", (<-observed).Kvs[0].Value)
		require.NoError(s, first.Resign(s.ctx))
		require.NoError(s, <-won)
		s.note("observed %s", (<-observed).Kvs[0].Value)
		require.NoError(s, two.Close())
		_, err = first.Leader(s.ctx)
		require.ErrorIs(s, err, concurrency.ErrElectionNoLeader)
	})
}

// TestSTM moves money between accounts, by all ways to isolate. None is lost.
func TestSTM(t *testing.T) {
	both(t, func(s *session) {
		const accounts = 5
		for i := range accounts {
			s.put(fmt.Sprint("account", i), "100")
		}
		move := func(from, to string) func(concurrency.STM) error {
			return func(stm concurrency.STM) error {
				have, _ := strconv.Atoi(stm.Get(from))
				if have < 10 || from == to {
					return nil
				}
				target, _ := strconv.Atoi(stm.Get(to))
				stm.Put(from, strconv.Itoa(have-10))
				stm.Put(to, strconv.Itoa(target+10))
				return nil
			}
		}
		for _, level := range []concurrency.Isolation{concurrency.SerializableSnapshot, concurrency.Serializable, concurrency.RepeatableReads} {
			var group sync.WaitGroup
			for i := range 6 {
				group.Go(func() {
					for j := range 10 {
						apply := move(fmt.Sprint("account", (i+j)%accounts), fmt.Sprint("account", (i*j+1)%accounts))
						if _, err := concurrency.NewSTM(s.client, apply, concurrency.WithIsolation(level)); err != nil {
							s.Errorf("stm: %v", err)
						}
					}
				})
			}
			group.Wait()
			sum := 0
			res, err := s.client.Get(s.ctx, "account", clientv3.WithPrefix())
			require.NoError(s, err)
			for _, kv := range res.Kvs {
				n, err := strconv.Atoi(string(kv.Value))
				require.NoError(s, err)
				sum += n
			}
			s.note("level %d: %d", level, sum)
		}
	})
}

// TestClientHelpers: what clientv3 builds from the calls: prefixes, watches that resume, leases that are
// kept alive, namespaces, the error values.
func TestClientHelpers(t *testing.T) {
	both(t, func(s *session) {
		kv := namespace.NewKV(s.client, "ns/")
		_, err := kv.Put(s.ctx, "a", "1")
		require.NoError(s, err)
		res, err := s.client.Get(s.ctx, "ns/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
		require.NoError(s, err)
		s.note("%s", res.Kvs[0].Key)
		s.clientErr("compact", second(s.client.Compact(s.ctx, 100)))
		s.clientErr("revoke", second(s.client.Revoke(s.ctx, 100)))
		s.clientErr("future", second(s.client.Get(s.ctx, "a", clientv3.WithRev(100))))
		require.NoError(s, second(s.client.Compact(s.ctx, 2, clientv3.WithCompactPhysical())))
		s.clientErr("compacted", second(s.client.Get(s.ctx, "a", clientv3.WithRev(1))))
		w := <-s.client.Watch(s.ctx, "a", clientv3.WithRev(1))
		s.clientErr("watch", w.Err())
		s.note("compact revision %d", w.CompactRevision)

		lease, err := s.client.Grant(s.ctx, 3)
		require.NoError(s, err)
		alive, err := s.client.KeepAlive(s.ctx, lease.ID)
		require.NoError(s, err)
		for range 3 {
			select {
			case a := <-alive:
				s.note("ttl %d", a.TTL)
			case <-time.After(time.Minute):
				s.Fatal("the lease is not kept alive")
			}
		}
		_, err = s.client.Revoke(s.ctx, lease.ID)
		require.NoError(s, err)
		s.clientErr("keep alive once", second(s.client.KeepAliveOnce(s.ctx, lease.ID)))
	})
}

func second[T any](_ T, err error) error { return err }
