package runtime

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// A pod's shims and its pause process are in a cgroup of their own, beside the pod's and without its limits. systemd takes
// every process in the cgroup of a service for a part of that service, whatever KillMode says: `systemctl kill`, and its
// OOMPolicy when one of them is killed, would end the pods with the agent (systemd.kill(5), systemd.service(5)).
//
// systemd looks at the v2 hierarchy, which with v1 is beside the others and has no controllers. Where only v1 is mounted the
// processes stay in the agent's cgroup.

// shimCgroup is the path of a pod's.
func (r *Runtime) shimCgroup(sandboxID string) string {
	return path.Join(r.cfg.CgroupRoot, "shim-"+sandboxID)
}

// startInShimCgroup has a process that is about to be started begin its life in the pod's cgroup for shims. The caller closes
// what is returned when the process has been started.
func (r *Runtime) startInShimCgroup(sandboxID string, attr *syscall.SysProcAttr) (*os.File, error) {
	if r.host.cgroupV2Mount == "" {
		return nil, nil
	}
	dir := filepath.Join(r.host.cgroupV2Mount, r.shimCgroup(sandboxID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cgroup of the shim: %w", err)
	}
	group, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("cgroup of the shim: %w", err)
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(group.Fd())
	return group, nil
}
