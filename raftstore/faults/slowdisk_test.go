package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var slowFor = flag.Duration("faults.slowdisk", 20*time.Second, "how long TestSlowDisk has slow disks")

// TestSlowDisk: however slow the disks are, of one member or of all, nobody is elected: the leader is alive, and the
// next one would not be faster.
func TestSlowDisk(t *testing.T) {
	requireNamespaces(t)
	c := newClusterOn(t, newDisk)
	c.waitReady(t)
	h := newHistory()
	watchers := watch(t, c)
	stopWriters := startWriters(t, c, h)
	n := newNemesis(t, c, h)
	require.NoError(t, n.awaitRecovery("the start"))

	before := c.terms(t)
	began := time.Now()
	for time.Since(began) < *slowFor {
		require.NoError(t, n.slowDown(t.Context()))
	}
	stopWriters()
	t.Log(report(n, time.Since(began)))
	require.Equal(t, before, c.terms(t), "the members' terms")
	verify(t, c, watchers, h)
}

// speeds are writes per second that a disk makes. An idle disk has to write twice for one sync, a busy one also
// has to write the pages of the store: a write to the log takes from 20 ms to seconds.
var speeds = []int{4, 10, 20, 50, 100}

// slowDown gives one or all members a slow disk for up to ten seconds.
func (n *nemesis) slowDown(ctx context.Context) error {
	speed := speeds[n.dice.IntN(len(speeds))]
	victims, kind := n.members, fmt.Sprintf("%3d writes/s on all disks", speed)
	if n.dice.IntN(2) == 0 {
		victim := n.victim(ctx)
		victims, kind = n.members[victim:victim+1], fmt.Sprintf("%3d writes/s on one disk", speed)
		if victim == n.leader(ctx) {
			kind += ", leader"
		}
	}
	n.count[kind]++
	n.history.begins(kind)
	for _, m := range victims {
		if err := m.disk.limit(speed); err != nil {
			return err
		}
	}
	n.pause(ctx, 10*time.Second)
	if err := n.quicken(); err != nil {
		return err
	}
	return n.awaitRecovery(kind)
}

// quicken ends slowDown.
func (n *nemesis) quicken() (err error) {
	for _, m := range n.members {
		err = errors.Join(err, m.disk.limit(0))
	}
	return err
}
