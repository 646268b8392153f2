package remains

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
	"time"
)

// Unmount takes away all mounts below a directory, the last ones first. The kernel has them under the directory's real
// name: what stayed mounted would be emptied with the directory.
func Unmount(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	var errs []error
	for _, point := range slices.Backward(points) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// RemoveCgroups removes the cgroups below one, and that itself, in the hierarchies of both versions, the innermost first. They
// have no processes any more.
func RemoveCgroups(root string) error {
	if !filepath.IsLocal(root) || root == "." {
		return fmt.Errorf("%q is no cgroup below the root", root)
	}
	var errs []error
	for _, pattern := range []string{"/sys/fs/cgroup/" + root, "/sys/fs/cgroup/*/" + root} {
		trees, _ := filepath.Glob(pattern)
		for _, tree := range trees {
			var dirs []string
			_ = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for _, dir := range slices.Backward(dirs) {
				errs = append(errs, rmdir(dir))
			}
		}
	}
	return errors.Join(errs...)
}

// rmdir removes a cgroup, whose last process may not be counted out yet.
func rmdir(dir string) error {
	var err error
	for range 100 {
		if err = syscall.Rmdir(dir); err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("cgroup %s: %w", dir, err)
}
