package runtime

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// ipcSysctls are the kernel parameters that each IPC namespace has of its own
// (ipc_namespaces(7)), beside those in fs/mqueue.
var ipcSysctls = []string{
	"kernel/msgmax", "kernel/msgmnb", "kernel/msgmni", "kernel/sem",
	"kernel/shmall", "kernel/shmmax", "kernel/shmmni", "kernel/shm_rmid_forced",
}

// sysctls are the parameters to set, by path below /proc/sys: those of the request, and two
// that let ordinary users in a pod bind low ports and ping, as Docker and containerd set
// them: the pod's network is its own.
func (s *sandbox) sysctls() map[string]string {
	out := map[string]string{}
	if !s.hostNetwork() {
		out["net/ipv4/ip_unprivileged_port_start"] = "0"
		out["net/ipv4/ping_group_range"] = "0 2147483647"
	}
	for key, value := range s.config.GetLinux().GetSysctls() {
		out[sysctlPath(key)] = value
	}
	return out
}

// checkSysctls refuses parameters that are not the sandbox's own: the kernel would change
// them for the whole machine. runc draws the same line.
func (s *sandbox) checkSysctls() error {
	own := s.namespaces()
	for _, path := range slices.Sorted(maps.Keys(s.sysctls())) {
		switch {
		case filepath.Clean(path) != path:
		case own.Net && strings.HasPrefix(path, "net/"):
			continue
		case own.IPC && (strings.HasPrefix(path, "fs/mqueue/") || slices.Contains(ipcSysctls, path)):
			continue
		}
		return fmt.Errorf("%w: sysctl %s is not one that a pod with these namespaces has of its own", ErrInvalid, path)
	}
	return nil
}

// sysctlPath turns a name into the path of its file, as sysctl(8) does: the separator that
// comes first separates, and the other one is part of a name, such as that of a VLAN's
// interface (net.ipv4.conf.eth0/100.forwarding).
func sysctlPath(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '/' {
		return name
	}
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
