package runtime

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// mounts lists a container's mounts in the order in which they must be made: the system's,
// the pod's files, the pod's volumes; parents before children. A volume replaces a default
// with the same path.
func (r *Runtime) mounts(s *sandbox, c *container) ([]specs.Mount, error) {
	sc := c.config.GetLinux().GetSecurityContext()
	taken := map[string]bool{}
	var volumes []specs.Mount
	for _, m := range c.config.GetMounts() {
		v, err := volume(m)
		if err != nil {
			return nil, err
		}
		taken[v.Destination] = true
		volumes = append(volumes, v)
	}
	out := slices.DeleteFunc(append(systemMounts(sc.GetPrivileged()), s.podMounts(sc.GetReadonlyRootfs())...),
		func(m specs.Mount) bool { return taken[m.Destination] })
	out = append(out, volumes...)
	slices.SortStableFunc(out, func(a, b specs.Mount) int {
		return strings.Count(a.Destination, "/") - strings.Count(b.Destination, "/")
	})
	return out, nil
}

// systemMounts are those of the OCI specification's defaults. A privileged container may
// change /sys.
func systemMounts(privileged bool) []specs.Mount {
	access := "ro"
	if privileged {
		access = "rw"
	}
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", access}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", access}},
	}
}

// podMounts are the files that all containers of the pod share.
func (s *sandbox) podMounts(readonly bool) []specs.Mount {
	options := []string{"rbind", "rprivate", "rw"}
	if readonly {
		options[2] = "ro"
	}
	out := []specs.Mount{{Destination: "/dev/shm", Type: "bind", Source: s.shmPath(), Options: []string{"rbind", "rprivate", "rw"}}}
	for _, name := range []string{"hosts", "hostname", "resolv.conf"} {
		out = append(out, specs.Mount{Destination: "/etc/" + name, Type: "bind", Source: filepath.Join(s.dir, name), Options: options})
	}
	return out
}

// volume is one mount of the request. A host path that does not exist becomes a directory,
// as with every other runtime.
func volume(m *runtimeapi.Mount) (specs.Mount, error) {
	var none specs.Mount
	if m.GetImage().GetImage() != "" {
		return none, fmt.Errorf("%w: image volumes", ErrUnsupported)
	}
	if len(m.GetUidMappings()) > 0 || len(m.GetGidMappings()) > 0 {
		return none, fmt.Errorf("%w: user namespaces", ErrUnsupported)
	}
	if m.GetContainerPath() == "" || m.GetHostPath() == "" {
		return none, fmt.Errorf("%w: mount without a path", ErrInvalid)
	}
	source, err := filepath.EvalSymlinks(m.GetHostPath())
	if errors.Is(err, os.ErrNotExist) {
		source, err = m.GetHostPath(), os.MkdirAll(m.GetHostPath(), 0o755)
	}
	if err != nil {
		return none, fmt.Errorf("mount %s: %w", m.GetHostPath(), err)
	}
	options := append([]string{"rbind"}, propagation(m)...)
	switch {
	case m.GetRecursiveReadOnly() && !m.GetReadonly():
		return none, fmt.Errorf("%w: mount %s is recursively read-only, yet not read-only", ErrInvalid, m.GetContainerPath())
	case m.GetRecursiveReadOnly() && m.GetPropagation() != runtimeapi.MountPropagation_PROPAGATION_PRIVATE:
		return none, fmt.Errorf("%w: mount %s is recursively read-only, yet propagates", ErrInvalid, m.GetContainerPath())
	case m.GetRecursiveReadOnly():
		options = append(options, "rro")
	case m.GetReadonly():
		options = append(options, "ro")
	default:
		options = append(options, "rw")
	}
	return specs.Mount{Destination: path.Clean("/" + m.GetContainerPath()), Type: "bind", Source: source, Options: options}, nil
}

func propagation(m *runtimeapi.Mount) []string {
	switch m.GetPropagation() {
	case runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:
		return []string{"rshared"}
	case runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
		return []string{"rslave"}
	}
	return []string{"rprivate"}
}

// rootfsPropagation is what the root must have so that its mounts can propagate: a slave
// of the host for either direction, shared for both.
func rootfsPropagation(mounts []*runtimeapi.Mount) string {
	p := "private"
	for _, m := range mounts {
		switch m.GetPropagation() {
		case runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:
			return "rshared"
		case runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
			p = "rslave"
		}
	}
	return p
}
