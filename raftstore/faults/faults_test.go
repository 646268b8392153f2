package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	duration = flag.Duration("faults.duration", 20*time.Second, "how long the nemesis is at work")
	seed     = flag.Uint64("faults.seed", 0, "seed of the faults; 0 takes one from the clock")
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(memberEnv); spec != "" {
		fmt.Fprintln(os.Stderr, "member ended:", runMember(spec))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestFaults: three members and twenty writers; nothing acknowledged is lost, nothing is applied twice, whatever
// happens to members and to the network between them.
func TestFaults(t *testing.T) {
	requireNamespaces(t)
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat the faults with -faults.seed %d", *seed)
	c := newCluster(t)
	c.waitReady(t)

	h := newHistory()
	watchers := watch(t, c)
	stopWriters := startWriters(t, c, h)
	n := newNemesis(t, c, h)
	ctx, cancel := context.WithTimeout(t.Context(), *duration)
	defer cancel()
	began := time.Now()
	err := n.run(ctx)
	stopWriters()
	t.Log(report(n, time.Since(began)))
	require.NoError(t, err)

	require.NotEmpty(t, n.count)
	verify(t, c, watchers, h)
}

// TestLongPartition: a partition of a follower is over long before the kernel would send again on the connections
// that it had, having doubled its patience each time; the members have to open others.
func TestLongPartition(t *testing.T) {
	requireNamespaces(t)
	c := newCluster(t)
	c.waitReady(t)
	h := newHistory()
	watchers := watch(t, c)
	stopWriters := startWriters(t, c, h)
	n := newNemesis(t, c, h)
	require.NoError(t, n.awaitRecovery("the start"))
	follower := (n.leader(t.Context()) + 1) % len(c.members)
	const kind = "partition of a follower"
	require.NoError(t, partition(true, true)(n, follower, 14*time.Second)) // it sends again after 12.6 and 25.4 s
	require.NoError(t, n.awaitRecovery(kind))
	stopWriters()
	t.Logf("all members serve again after %s", spread(n.recovery[kind]))
	verify(t, c, watchers, h)
}

func requireNamespaces(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
}

// watch starts a watcher on each member.
func watch(t *testing.T, c *cluster) []*watcher {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var all []*watcher
	for _, m := range c.members {
		w := &watcher{}
		all = append(all, w)
		running.Go(func() { w.run(ctx, m.client) })
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return all
}

// startWriters starts the writers; stop ends them and waits for the answers that they wait for.
func startWriters(t *testing.T, c *cluster, h *history) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range writers {
		member := i % len(c.members)
		w := &writer{number: i, member: member, client: c.members[member].client, history: h}
		running.Go(func() { w.run(ctx) })
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// verify compares what the writers were told with what the watches tell, once all members are well.
func verify(t *testing.T, c *cluster, watchers []*watcher, h *history) {
	c.waitReady(t)
	events := complete(t, watchers, lastRevision(t, c))
	require.NotEmpty(t, h.writes)
	require.Empty(t, check(h, events))
}

// lastRevision writes through each member once more, and compares the members' content at the revision of the last write.
func lastRevision(t *testing.T, c *cluster) (revision int64) {
	for _, m := range c.members {
		answer, err := m.client.Put(t.Context(), "last/"+m.spec.ID, "")
		require.NoError(t, err)
		revision = answer.Header.Revision
	}
	hashes := map[uint32][]string{}
	for _, m := range c.members {
		_, err := m.client.Get(t.Context(), "ready") // so it has applied everything
		require.NoError(t, err)
		answer, err := m.client.HashKV(t.Context(), m.client.Endpoints()[0], revision)
		require.NoError(t, err)
		hashes[answer.Hash] = append(hashes[answer.Hash], m.spec.ID)
	}
	require.Len(t, hashes, 1, "hash of revision %d", revision)
	return revision
}

// complete waits until all watches have told everything up to a revision, and returns that.
func complete(t *testing.T, watchers []*watcher, revision int64) (events []event) {
	for i, w := range watchers {
		var told []event
		require.Eventually(t, func() bool {
			var ok bool
			var err error
			told, ok, err = w.upTo(revision)
			return ok || err != nil
		}, time.Minute, 20*time.Millisecond, "watch %d does not come to revision %d", i, revision)
		_, _, err := w.upTo(revision)
		require.NoError(t, err, "watch %d", i)
		if i == 0 {
			events = told
		}
		require.True(t, slices.Equal(events, told), "watch %d told another history than watch 0", i)
	}
	return events
}
