package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const cgroupMount = "/sys/fs/cgroup"

// cgroupDirs are the directories of a cgroup: one with v2, one per hierarchy with v1 (and
// the empty v2 hierarchy beside them, where runc puts containers too).
func (r *Runtime) cgroupDirs(path string) []string {
	if r.host.cgroupV2 {
		return []string{filepath.Join(cgroupMount, path)}
	}
	dirs, _ := filepath.Glob(filepath.Join(cgroupMount, "*", path)) // no metacharacters of ours
	return dirs
}

// oomFile is where the kernel counts the OOM kills of a cgroup.
func (r *Runtime) oomFile(path string) string {
	if r.host.cgroupV2 {
		return filepath.Join(cgroupMount, path, "memory.events")
	}
	return filepath.Join(cgroupMount, "memory", path, "memory.oom_control")
}

// makePodCgroup makes the pod's cgroup when it is ours and has limits; otherwise runc makes
// it along with the first container.
func (r *Runtime) makePodCgroup(s *sandbox) error {
	limits := s.config.GetLinux().GetResources()
	if limits == nil {
		return nil
	}
	path, res := r.cgroupParent(s), r.resources(limits)
	var err error
	if r.host.cgroupV2 {
		_, err = cgroup2.NewManager(cgroupMount, path, cgroup2.ToResources(res))
	} else {
		_, err = cgroup1.New(cgroup1.StaticPath(path), res)
	}
	if err != nil {
		return fmt.Errorf("cgroup %s: %w", path, err)
	}
	return nil
}

// UpdatePodSandboxResources changes the pod's own limits. A cgroup parent that the caller
// named is the caller's to change.
func (r *Runtime) UpdatePodSandboxResources(_ context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	if s.config.GetLinux().GetCgroupParent() != "" {
		return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
	}
	res := r.resources(req.GetResources())
	if r.host.cgroupV2 {
		var m *cgroup2.Manager
		if m, err = cgroup2.Load(r.cgroupParent(s)); err == nil {
			err = m.Update(cgroup2.ToResources(res))
		}
	} else {
		var cg cgroup1.Cgroup
		if cg, err = cgroup1.New(cgroup1.StaticPath(r.cgroupParent(s)), res); err == nil {
			err = cg.Update(res)
		}
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, err
}

// removeTries and removePause bound the wait for killed processes to leave a cgroup.
const (
	removeTries = 50
	removePause = 10 * time.Millisecond
)

// removeCgroup kills what is left in a cgroup and its children, and removes them.
func (r *Runtime) removeCgroup(path string) error {
	var errs []error
	for _, dir := range r.cgroupDirs(path) {
		errs = append(errs, removeCgroupDir(dir))
	}
	return errors.Join(errs...)
}

func removeCgroupDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // it is gone
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroupDir(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for range removeTries {
		if err = unix.Rmdir(dir); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		killCgroup(dir)
		time.Sleep(removePause)
	}
	return fmt.Errorf("remove cgroup %s: %w", dir, err)
}

// killCgroup kills the processes that are in the directory now.
func killCgroup(dir string) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, word := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL) // gone already is as good
		}
	}
}
