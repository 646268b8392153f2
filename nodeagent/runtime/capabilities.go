package runtime

import (
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// allCapabilities are the names of the bits of a capability set, in order (capability.h).
var allCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
	"CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE",
	"CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER",
	"CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT",
	"CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME",
	"CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL",
	"CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
}

// defaultCapabilities are those of an ordinary container, the set of Docker and containerd.
var defaultCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW",
	"CAP_SETGID", "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE",
	"CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
}

// capabilityNames names the bits of mask.
func capabilityNames(mask uint64) []string {
	var out []string
	for bit, name := range allCapabilities {
		if mask&(1<<bit) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// capabilities are the sets of a container's process. Nobody can have more than this
// process has itself.
func (r *Runtime) capabilities(sc *runtimeapi.LinuxContainerSecurityContext) *specs.LinuxCapabilities {
	set := defaultCapabilities
	if sc.GetPrivileged() {
		set = r.host.caps
	}
	wish := sc.GetCapabilities()
	set = changeSet(set, wish, r.host.caps)
	set = slices.DeleteFunc(set, func(c string) bool { return !slices.Contains(r.host.caps, c) })
	caps := &specs.LinuxCapabilities{Bounding: set, Effective: set, Permitted: set}
	if ambient := wish.GetAddAmbientCapabilities(); len(ambient) > 0 {
		caps.Ambient = changeSet(nil, &runtimeapi.Capability{AddCapabilities: ambient}, r.host.caps)
		caps.Inheritable = caps.Ambient
	}
	return caps
}

// changeSet drops, then adds; ALL means everything. Adding ALL comes before dropping single
// ones, and dropping ALL before adding single ones.
func changeSet(set []string, wish *runtimeapi.Capability, all []string) []string {
	add, drop := fullNames(wish.GetAddCapabilities()), fullNames(wish.GetDropCapabilities())
	set = slices.Clone(set)
	if slices.Contains(add, "CAP_ALL") {
		set = slices.Clone(all)
	}
	if slices.Contains(drop, "CAP_ALL") {
		set = nil
	}
	set = slices.DeleteFunc(set, func(c string) bool { return slices.Contains(drop, c) })
	for _, c := range add {
		if c != "CAP_ALL" && !slices.Contains(set, c) {
			set = append(set, c)
		}
	}
	return set
}

// fullNames writes NET_ADMIN and net_admin as CAP_NET_ADMIN.
func fullNames(names []string) []string {
	var out []string
	for _, n := range names {
		n = strings.ToUpper(n)
		if !strings.HasPrefix(n, "CAP_") {
			n = "CAP_" + n
		}
		out = append(out, n)
	}
	return out
}
