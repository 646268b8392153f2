package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var slowFor = flag.Duration("faults.slowdisk", 20*time.Second, "how long TestSlowDisk has slow disks")

// TestSlowDisk: however slow the disks are, of one member or of all, nobody is elected: the leader is alive, and the
// next one would have the same disk.
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
	require.NoError(t, n.quicken())
	require.NoError(t, n.awaitRecovery("the last"))
	stopWriters()
	t.Log(report(n, time.Since(began)))
	require.Equal(t, before, c.terms(t), "the members' terms")
	verify(t, c, watchers, h)
}

// speeds are writes per second that a disk makes. An idle disk has to write twice for one sync, a busy one also
// has to write the pages of the store: a write to the log takes from 20 ms to seconds.
var speeds = []int{4, 10, 20, 50, 100}

// slowDown gives one or all members a slow disk for some seconds.
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
	return n.quicken()
}

// quicken ends slowDown.
func (n *nemesis) quicken() (err error) {
	for _, m := range n.members {
		err = errors.Join(err, m.disk.limit(0))
	}
	return err
}

// terms are those of the members.
func (c *cluster) terms(t *testing.T) (all []uint64) {
	for _, m := range c.members {
		s, err := m.client.Status(t.Context(), m.client.Endpoints()[0])
		require.NoError(t, err)
		all = append(all, s.RaftTerm)
	}
	return all
}

// disk is a file system of a member's own, whose writes can be slowed down: an image on a loop device, which the
// kernel's blkio controller throttles for the processes in the disk's cgroup.
type disk struct {
	dir    string
	cgroup string
	device uint64
}

const (
	blkio     = "/sys/fs/cgroup/blkio"
	diskBytes = 1 << 30 // sparse
)

func newDisk(t *testing.T, name string) *disk {
	d := &disk{dir: filepath.Join(t.TempDir(), name), cgroup: filepath.Join(blkio, fmt.Sprintf("kontiki-faults-%d-%s", os.Getpid(), name))}
	if _, err := os.Stat(filepath.Join(blkio, "blkio.throttle.write_iops_device")); err != nil {
		t.Skip("cannot make a disk slow here: the blkio controller of cgroup v1 is missing: ", err)
	}
	require.NoError(t, os.Mkdir(d.dir, 0o700))
	require.NoError(t, os.Mkdir(d.cgroup, 0o700))
	t.Cleanup(func() { require.NoError(t, os.Remove(d.cgroup)) })
	image := d.dir + ".img"
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, diskBytes))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Skipf("cannot make a file system here: mkfs.ext4: %v %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, d.dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a file system here: %v %s", err, out)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(d.dir, 0)) })
	var stat unix.Stat_t
	require.NoError(t, unix.Stat(d.dir, &stat))
	d.device = stat.Dev
	return d
}

// limit has the disk make so many writes per second at most; 0 is no limit.
func (d *disk) limit(writes int) error {
	rule := fmt.Sprintf("%d:%d %d", unix.Major(d.device), unix.Minor(d.device), writes)
	return os.WriteFile(filepath.Join(d.cgroup, "blkio.throttle.write_iops_device"), []byte(rule), 0)
}

// enter puts this process on the disk's cgroup.
func enterCgroup(cgroup string) error {
	return os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

