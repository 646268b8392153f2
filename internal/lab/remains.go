package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// unmount takes away all mounts below the machine's directory, the last ones first.
func (h *Host) unmount() error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], h.dir()+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	var failed error
	for _, p := range points {
		if err := syscall.Unmount(p, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			failed = errors.Join(failed, fmt.Errorf("lab: unmount %s: %w", p, err))
		}
	}
	return failed
}

// removeCgroups takes away the machines' cgroups, of both versions; they are empty by now.
func (l *Lab) removeCgroups() error {
	var failed error
	for _, h := range l.Hosts {
		for _, pattern := range []string{"/sys/fs/cgroup/" + h.cgroup(), "/sys/fs/cgroup/*/" + h.cgroup()} {
			roots, _ := filepath.Glob(pattern)
			for _, root := range roots {
				failed = errors.Join(failed, removeTree(root))
			}
		}
	}
	return failed
}

// removeTree removes a cgroup with those in it, the innermost first: their files cannot be removed, and go with them.
func removeTree(root string) error {
	var dirs []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	slices.Reverse(dirs)
	var failed error
	for _, dir := range dirs {
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
			failed = errors.Join(failed, fmt.Errorf("lab: cgroup %s: %w", dir, err))
		}
	}
	return failed
}
