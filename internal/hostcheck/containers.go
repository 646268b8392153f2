package hostcheck

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Lacking says in a few words why this process cannot run containers; empty if it can. runc is the
// program to run them with, cgroupRoot the cgroup to put them in ("" or a name below the root).
func Lacking(runc, cgroupRoot string) string {
	checks := []struct {
		what  string
		check func() error
	}{
		{"root", root},
		{"runc", func() error { return executable(runc) }},
		{"namespaces", func() error { return namespaces(runc) }},
		{"mounts", func() error { return mounts(runc) }},
		{"cgroups", func() error { return cgroups("/sys/fs/cgroup", cgroupRoot) }},
	}
	for _, c := range checks {
		if err := c.check(); err != nil {
			return fmt.Sprintf("%s: %v", c.what, err)
		}
	}
	return ""
}

func root() error {
	if os.Geteuid() != 0 {
		return errors.New("not running as root")
	}
	return nil
}

func executable(path string) error {
	_, err := exec.LookPath(path)
	return err
}

// namespaces starts runc in new ones, as it will start containers.
func namespaces(runc string) error {
	cmd := exec.Command(runc, "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID,
	}
	return cmd.Run()
}

// mounts starts runc in a mount namespace of its own. Go makes / private in it first, with mount(2):
// a container that lacks CAP_SYS_ADMIN, or a security module, refuses that.
func mounts(runc string) error {
	cmd := exec.Command(runc, "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	return cmd.Run()
}

// cgroups makes and removes a cgroup in every hierarchy that limits containers.
func cgroups(mountpoint, name string) error {
	if _, err := os.Stat(filepath.Join(mountpoint, "cgroup.controllers")); err == nil {
		return unifiedCgroup(mountpoint, name)
	}
	found := false
	for _, controller := range []string{"cpu", "memory", "pids", "devices"} {
		hierarchy := filepath.Join(mountpoint, controller)
		if _, err := os.Stat(hierarchy); err != nil {
			continue
		}
		found = true
		if err := tryCgroup(hierarchy, name); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("none mounted at %s", mountpoint)
	}
	return nil
}

// unifiedCgroup checks cgroup v2, where a controller reaches the children only if their parent says so.
func unifiedCgroup(mountpoint, name string) error {
	control := filepath.Join(mountpoint, "cgroup.subtree_control")
	enabled, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if strings.Contains(" "+strings.TrimSpace(string(enabled))+" ", " "+controller+" ") {
			continue
		}
		if err := os.WriteFile(control, []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("enable %s: %w", controller, err)
		}
	}
	return tryCgroup(mountpoint, name)
}

func tryCgroup(hierarchy, name string) error {
	parent := filepath.Join(hierarchy, name)
	if _, err := os.Stat(parent); err != nil { // made later; whether it can be is seen in the root
		parent = hierarchy
	}
	dir, err := os.MkdirTemp(parent, "kontiki-check-")
	if err != nil {
		return err
	}
	return os.Remove(dir)
}
