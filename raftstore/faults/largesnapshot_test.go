package faults

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var snapshotMiB = flag.Int("faults.snapshot", 0, "MiB of the store that TestLargeSnapshot_RF09 sends to a new member; 0 skips it")

// maxSnapshotMemory is how much memory of its own a member may have, beyond what it had before, while it sends a
// snapshot of any size or gets one. Pages of mapped files are not its own: the kernel takes them back.
const maxSnapshotMemory = 256 << 20

// TestLargeSnapshot_RF09: a store that is much larger than what may be in memory goes to a new member, which replaces one whose
// disk is lost, while clients write. The new one catches up and votes; neither it nor the leader ever holds the store in memory.
func TestLargeSnapshot_RF09(t *testing.T) {
	requireNamespaces(t)
	if *snapshotMiB == 0 {
		t.Skip("takes minutes and disk: -faults.snapshot 1024")
	}
	c := newCluster(t)
	c.waitReady(t)
	began := time.Now()
	fill(t, c, *snapshotMiB)
	t.Logf("filled with %d MiB in %v", *snapshotMiB, time.Since(began).Round(time.Second))

	lost := (c.leader(t.Context()) + 1) % len(c.members)
	c.members[lost].kill()
	require.NoError(t, os.RemoveAll(c.members[lost].spec.Dir))
	writes := c.writeSteadily(t, lost)
	memory := map[string]func() int64{}
	for i, m := range c.members {
		if i != lost {
			memory[m.spec.ID] = watchMemory(t, m)
		}
	}
	began = time.Now()
	newcomer := c.members[lost]
	newcomer.spec.ID += "2"
	for _, p := range newcomer.spec.Peers {
		newcomer.spec.Join = append(newcomer.spec.Join, p.Address)
	}
	require.NoError(t, newcomer.start(t))
	memory[newcomer.spec.ID] = watchMemory(t, newcomer)
	require.Eventually(t, func() bool { return c.caughtUp(t, newcomer) }, 30*time.Minute, 100*time.Millisecond)
	took := time.Since(began)
	written := writes()
	require.NotZero(t, written)
	t.Logf("the new member has all and votes after %v; %d writes meanwhile", took.Round(100*time.Millisecond), written)
	for id, grown := range memory {
		n := grown()
		t.Logf("%s had at most %d MiB more than before", id, n>>20)
		require.Less(t, n, int64(maxSnapshotMemory), "memory of %s", id)
	}
	var hashes []uint32
	revision := c.revision(t)
	for _, m := range c.members {
		h, err := m.client.HashKV(t.Context(), "unix://"+m.spec.Socket, revision)
		require.NoError(t, err)
		hashes = append(hashes, h.Hash)
	}
	require.Equal(t, []uint32{hashes[0], hashes[0], hashes[0]}, hashes, "fingerprints of all members")
}

// fill writes so many MiB of values that cannot be compressed, several at a time.
func fill(t *testing.T, c *cluster, mib int) {
	const valueBytes = 64 << 10 // raft keeps its last 128 entries in memory: that is not what is looked at here
	client := c.members[c.leader(t.Context())].client
	next := atomic.Int64{}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			value := make([]byte, valueBytes)
			dice := rand.NewChaCha8([32]byte{byte(next.Load())})
			for i := next.Add(1); i <= int64(mib)<<20/valueBytes; i = next.Add(1) {
				_, _ = dice.Read(value) // never fails
				_, err := client.Put(t.Context(), fmt.Sprintf("large/%06d", i), string(value))
				if err != nil {
					t.Errorf("fill: %v", err)
					return
				}
			}
		})
	}
	group.Wait()
	require.False(t, t.Failed())
}

// writeSteadily has the members but one written to, some 300 times a second, until the function it returns is called; that
// says how many writes there were. Each must succeed.
func (c *cluster) writeSteadily(t *testing.T, but int) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	n := atomic.Int64{}
	for i, m := range c.members {
		if i == but {
			continue
		}
		group.Go(func() {
			tick := time.NewTicker(time.Second / 150)
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				_, err := m.client.Put(ctx, fmt.Sprint("small/", m.spec.ID), strconv.FormatInt(n.Add(1), 10))
				if err != nil && ctx.Err() == nil {
					t.Errorf("write to %s: %v", m.spec.ID, err)
					return
				}
			}
		})
	}
	return func() int { cancel(); group.Wait(); return int(n.Load()) }
}

// caughtUp says whether a member votes and has what is written when it is asked.
func (c *cluster) caughtUp(t *testing.T, m *member) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := m.client.Get(ctx, "ready"); err != nil { // linearizable: it has applied all
		return false
	}
	status, err := m.client.Status(ctx, "unix://"+m.spec.Socket)
	return err == nil && !status.IsLearner && len(status.Errors) == 0
}

func (c *cluster) revision(t *testing.T) int64 {
	for _, m := range c.members { // each has caught up with it then
		_, err := m.client.Get(t.Context(), "ready")
		require.NoError(t, err)
	}
	r, err := c.members[0].client.Get(t.Context(), "ready")
	require.NoError(t, err)
	return r.Header.Revision
}

// watchMemory looks at the memory of a member's process, and returns what says by how much it has been larger than
// at first, at most. After that it is not watched any more.
func watchMemory(t *testing.T, m *member) func() int64 {
	m.mu.Lock()
	path := fmt.Sprintf("/proc/%d/status", m.process.Process.Pid)
	m.mu.Unlock()
	first, err := anonymousBytes(path)
	require.NoError(t, err)
	most := first
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			if now, err := anonymousBytes(path); err == nil { // its end is noticed elsewhere
				most = max(most, now)
			}
		}
	}()
	return func() int64 { close(stop); <-stopped; return most - first }
}

// anonymousBytes is RssAnon, the memory of a process that is no page of a file.
func anonymousBytes(path string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if fields := strings.Fields(string(line)); len(fields) == 3 && fields[0] == "RssAnon:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no RssAnon in %s", path)
}
