package runtime

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// devices are the device nodes of a container and the rules of its devices cgroup. runc
// adds the usual ones (null, zero, full, random, urandom, tty, ptmx) by itself.
func (r *Runtime) devices(config *runtimeapi.ContainerConfig) ([]specs.LinuxDevice, []specs.LinuxDeviceCgroup, error) {
	rules := []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	var nodes []specs.LinuxDevice
	if config.GetLinux().GetSecurityContext().GetPrivileged() {
		rules = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
		nodes = hostDevices()
	}
	for _, d := range config.GetDevices() {
		found, err := devicesAt(d.GetHostPath(), d.GetContainerPath())
		if err != nil {
			return nil, nil, fmt.Errorf("device %s: %w", d.GetHostPath(), err)
		}
		for _, n := range found {
			nodes = append(nodes, n)
			rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: n.Type, Major: &n.Major, Minor: &n.Minor, Access: d.GetPermissions()})
		}
	}
	return nodes, rules, nil
}

// devicesAt is the device at path, or all below it if it is a directory, renamed to where
// the container shall see them.
func devicesAt(path, inContainer string) ([]specs.LinuxDevice, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		d, err := device(path)
		d.Path = inContainer
		return []specs.LinuxDevice{d}, err
	}
	var out []specs.LinuxDevice
	err = walkDevices(path, func(p string) {
		if d, err := device(p); err == nil {
			rel, _ := filepath.Rel(path, p) // p is below path
			d.Path = filepath.Join(inContainer, rel)
			out = append(out, d)
		}
	})
	return out, err
}

// hostDevices are all devices of the host, except what each container has of its own.
func hostDevices() []specs.LinuxDevice {
	var out []specs.LinuxDevice
	_ = walkDevices("/dev", func(p string) { // an unreadable corner of /dev is left out
		if d, err := device(p); err == nil {
			out = append(out, d)
		}
	})
	return out
}

func walkDevices(dir string, f func(path string)) error {
	return filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see hostDevices
		}
		switch p {
		case "/dev/pts", "/dev/shm", "/dev/fd", "/dev/mqueue", "/dev/.lxc", "/dev/.lxd-mounts", "/dev/.udev":
			return fs.SkipDir
		case "/dev/console", "/dev/ptmx", "/dev/tty", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom":
			return nil // runc's own
		}
		if e.Type()&fs.ModeDevice != 0 {
			f(p)
		}
		return nil
	})
}

func device(path string) (specs.LinuxDevice, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return specs.LinuxDevice{}, err
	}
	kind := ""
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		kind = "c"
	case unix.S_IFBLK:
		kind = "b"
	default:
		return specs.LinuxDevice{}, fmt.Errorf("%w: %s is no device", ErrInvalid, path)
	}
	mode := fs.FileMode(st.Mode & 0o777)
	return specs.LinuxDevice{
		Path: path, Type: kind, Major: int64(unix.Major(st.Rdev)), Minor: int64(unix.Minor(st.Rdev)),
		FileMode: &mode, UID: &st.Uid, GID: &st.Gid,
	}, nil
}
