package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// disk is a file system of a member's own, whose writes can be slowed down: an image on a loop device, which the
// kernel's blkio controller throttles for the processes in the disk's cgroup. It is mounted for the host alone, and goes with it.
type disk struct {
	dir    string
	cgroup string
	device uint64
}

const (
	blkio     = "/sys/fs/cgroup/blkio"
	writeRule = "blkio.throttle.write_iops_device"
	diskBytes = 1 << 30 // sparse
)

func newDisk(t *testing.T, h *host) *disk {
	if _, err := os.Stat(filepath.Join(blkio, writeRule)); err != nil {
		t.Skip("cannot make a disk slow here: the blkio controller of cgroup v1 is missing: ", err)
	}
	d := &disk{dir: t.TempDir(), cgroup: filepath.Join(blkio, fmt.Sprintf("kontiki-faults-%d-%s", os.Getpid(), h.name))}
	image := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, diskBytes))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Skipf("cannot make a file system here: mkfs.ext4: %v %s", err, out)
	}
	if err := h.do(func() error { return d.mount(image) }); err != nil {
		t.Skip("cannot mount a file system here: ", err)
	}
	require.NoError(t, os.Mkdir(d.cgroup, 0o700))
	t.Cleanup(func() { require.NoError(t, os.Remove(d.cgroup)) })
	return d
}

// mount runs on the host's thread.
func (d *disk) mount(image string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if out, err := exec.Command("mount", "-o", "loop", image, d.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	var stat unix.Stat_t
	err := unix.Stat(d.dir, &stat)
	d.device = stat.Dev
	return err
}

// limit has the disk make so many writes per second at most; 0 is no limit.
func (d *disk) limit(writes int) error {
	rule := fmt.Sprintf("%d:%d %d", unix.Major(d.device), unix.Minor(d.device), writes)
	return os.WriteFile(filepath.Join(d.cgroup, writeRule), []byte(rule), 0)
}

// enterCgroup puts this process into a cgroup.
func enterCgroup(cgroup string) error {
	return os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}
