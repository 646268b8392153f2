package install

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Installed says whether a machine has files of a role.
func Installed(l Layout, role Role) bool {
	for _, path := range []string{l.Unit(role), l.Config(role)} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// stopLimit is how long a process may take to stop.
const stopLimit = 30 * time.Second

// Stop stops a role's service, and the process that holds its data directory, whoever started it.
func Stop(l Layout, role Role, dataDir string) error {
	if l.systemdRuns() {
		if _, err := os.Stat(l.Unit(role)); err == nil {
			if err := systemctl("disable", "--now", service(role)); err != nil {
				return err
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dataDir, "lock"))
	if err != nil {
		return nil // nothing has ever run there
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if !isKontiki(pid) {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	for deadline := time.Now().Add(stopLimit); isKontiki(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d of %s does not stop", pid, dataDir)
		}
	}
	return nil
}

// isKontiki says whether a pid is a kontiki that runs: the number may be another's by now.
func isKontiki(pid int) bool {
	if pid <= 1 {
		return false
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.HasPrefix(filepath.Base(program), "kontiki")
}

// RemoveRole takes away a role's unit and flags.
func RemoveRole(l Layout, role Role) error {
	err := errors.Join(remove(l.Unit(role)), remove(l.Config(role)))
	if l.systemdRuns() {
		err = errors.Join(err, systemctl("daemon-reload"))
	}
	return err
}

// RemovePrograms takes away what all roles share.
func RemovePrograms(l Layout) error {
	err := errors.Join(remove(l.Link()), os.RemoveAll(l.Lib()))
	_ = os.Remove(filepath.Dir(l.Config(Server))) // unless somebody has put something there
	return err
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveData takes away a data directory. One that is none, which a lock file is the sign of, is left alone.
func RemoveData(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
		return fmt.Errorf("%s is no data directory of kontiki, it is left alone: %w", dir, err)
	}
	return os.RemoveAll(dir)
}

// EnsureNFT installs Debian's nftables if nft is missing and may be installed, and says in one line what came of it. A node
// works without, but for Services, policies and host ports.
func EnsureNFT(out io.Writer) {
	if _, err := exec.LookPath("nft"); err == nil {
		return
	}
	if _, err := os.Stat("/usr/sbin/nft"); err == nil {
		return
	}
	get := func() error {
		cmd := exec.Command("apt-get", "install", "-y", "-q", "--no-install-recommends", "nftables")
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		return cmd.Run()
	}
	if os.Geteuid() == 0 && (get() == nil || exec.Command("apt-get", "update", "-q").Run() == nil && get() == nil) {
		fmt.Fprintln(out, "installed Debian's nftables")
		return
	}
	fmt.Fprintln(out, "nft is not on this machine: pods run, but without Services, network policies and host ports (install the package nftables)")
}
