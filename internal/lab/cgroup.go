package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/containerd/cgroups/v3"
	"golang.org/x/sys/unix"
)

// cgroupRoot is where cgroups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// cgroup is the lab's, below the root; each machine has one in it. It is named by when the lab was started, since namespaces do
// not part the cgroups of two labs that run at the same time.
func (l *Lab) cgroup() string {
	return prefix + "-" + strconv.FormatInt(l.Started.UnixNano(), 36)
}

// A machine's cgroup has two in it, since one of version 2 holds either processes or other cgroups: one for its kontiki and
// what that runs on the machine itself, and one for pods.
func (h *Host) cgroup() string     { return h.lab.cgroup() + "/" + h.Name }
func (h *Host) ownCgroup() string  { return h.cgroup() + "/kontiki" }
func (h *Host) podsCgroup() string { return h.cgroup() + "/pods" }

// hierarchies are the mounted trees of cgroups: one with version 2, one for each controller with version 1.
func hierarchies() []string {
	if cgroups.Mode() == cgroups.Unified {
		return []string{cgroupRoot}
	}
	found, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", "tasks"))
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

// makeCgroup makes the cgroup of the machine's own processes in all hierarchies.
func (h *Host) makeCgroup() error {
	for _, root := range hierarchies() {
		if err := os.MkdirAll(filepath.Join(root, h.ownCgroup()), 0o755); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		if filepath.Base(root) == "cpuset" {
			if err := copyCPUSet(root, h.ownCgroup()); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyCPUSet gives a cgroup of version 1, and those above it, the processors of the root: it has none when it is new, and
// takes no process then (cpusets(7)).
func copyCPUSet(root, cgroup string) error {
	if dir := filepath.Dir(cgroup); dir != "." {
		if err := copyCPUSet(root, dir); err != nil {
			return err
		}
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(root, filepath.Dir(cgroup), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(root, cgroup, name), value, 0)
		}
		if err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	return nil
}

// enterCgroup has what this thread starts with attr be in the machine's cgroup. The caller calls done once it has started it,
// and lets the thread end.
func (h *Host) enterCgroup(attr *syscall.SysProcAttr) (done func(), err error) {
	done = func() {}
	for _, root := range hierarchies() {
		dir := filepath.Join(root, h.ownCgroup())
		if cgroups.Mode() != cgroups.Unified {
			err := os.WriteFile(filepath.Join(dir, "tasks"), []byte(strconv.Itoa(unix.Gettid())), 0)
			if err != nil {
				return done, fmt.Errorf("lab: %w", err)
			}
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			return done, fmt.Errorf("lab: %w", err)
		}
		attr.UseCgroupFD, attr.CgroupFD, done = true, int(f.Fd()), func() { _ = f.Close() }
	}
	return done, nil
}
