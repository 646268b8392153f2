package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/cgroups/v3"
	"golang.org/x/sys/unix"
)

// throttleDisk has the kernel's blkio controller (io with cgroup version 2) delay the writes of the machine's kontiki to the
// disk that the lab is on. What others write there is not delayed, and neither is what the file system's journal writes by itself.
func (h *Host) throttleDisk(writes int) error {
	device, err := diskOf(h.dir())
	if err != nil {
		return err
	}
	file, rule := throttleRule(cgroups.Mode() == cgroups.Unified, device, writes)
	if cgroups.Mode() == cgroups.Unified {
		if err := h.enableIO(); err != nil {
			return err
		}
	}
	for _, root := range hierarchies() {
		path := filepath.Join(root, h.ownCgroup(), file)
		if _, err := os.Stat(path); err != nil {
			continue // another controller's
		}
		if err := os.WriteFile(path, []byte(rule), 0); err != nil {
			return fmt.Errorf("%w: throttle the disk %s: %w", ErrUnsupported, device, err)
		}
		return nil
	}
	return fmt.Errorf("%w: there is no %s in the cgroups (the blkio or io controller)", ErrUnsupported, file)
}

// throttleRule is what is written to which file of a cgroup (the kernel's blkio-controller.rst, cgroup-v2.rst).
func throttleRule(unified bool, device string, writes int) (file, rule string) {
	switch {
	case unified && writes == 0:
		return "io.max", device + " wiops=max"
	case unified:
		return "io.max", fmt.Sprintf("%s wiops=%d", device, writes)
	}
	return "blkio.throttle.write_iops_device", fmt.Sprintf("%s %d", device, writes)
}

// enableIO lets the machine's cgroup and those above it have the io controller.
func (h *Host) enableIO() error {
	dir := cgroupRoot
	for _, name := range append([]string{"."}, strings.Split(filepath.Dir(h.ownCgroup()), "/")...) {
		dir = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
			return fmt.Errorf("%w: the io controller: %w", ErrUnsupported, err)
		}
	}
	return nil
}

// diskOf is the disk that a directory is on, as MAJOR:MINOR. Of a partition it is the whole disk, which is what can be throttled.
func diskOf(dir string) (string, error) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return "", fmt.Errorf("lab: %s: %w", dir, err)
	}
	device := fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	path, err := filepath.EvalSymlinks(filepath.Join("/sys/dev/block", device))
	if err != nil {
		return "", fmt.Errorf("%w: %s is not on a disk (a tmpfs, or an overlay), so nothing slows it down: choose another --dir", ErrUnsupported, dir)
	}
	if _, err := os.Stat(filepath.Join(path, "partition")); errors.Is(err, fs.ErrNotExist) {
		return device, nil
	}
	whole, err := os.ReadFile(filepath.Join(filepath.Dir(path), "dev"))
	if err != nil {
		return "", fmt.Errorf("lab: the disk of %s: %w", device, err)
	}
	return strings.TrimSpace(string(whole)), nil
}
