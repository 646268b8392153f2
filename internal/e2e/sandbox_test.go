package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// insideEnv marks the second, sandboxed, run of the test binary.
const insideEnv = "KONTIKI_E2E_INSIDE"

// missing says in a sentence why the tests of this package cannot run here; empty if they can.
var missing string

// nodeIP is the address of the node under test, out of the range for documentation (RFC 5737).
const nodeIP = "192.0.2.1"

// binDir holds the binaries under test.
var binDir string

func TestMain(m *testing.M) {
	binDir = findBin()
	switch {
	case os.Getuid() != 0:
		missing = "end-to-end tests need root (namespaces, mounts, cgroups)"
	case binDir == "":
		missing = "end-to-end tests need bin/kontiki: run `make build` first"
	}
	if missing != "" {
		os.Exit(m.Run())
	}
	if os.Getenv(insideEnv) == "" {
		os.Exit(runInside())
	}
	if err := prepareInside(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e sandbox:", err)
		os.Exit(1)
	}
	code := m.Run()
	stopShared()
	os.Exit(code)
}

// needCluster skips a test, naming the reason, where the machine cannot run a node.
func needCluster(t testing.TB) {
	t.Helper()
	if missing != "" {
		t.Skip(missing)
	}
	if testing.Short() {
		t.Skip("end-to-end tests are left out of -short runs")
	}
}

func findBin() string {
	wd, err := os.Getwd()
	if err != nil {
		return ""
	}
	dir := filepath.Join(wd, "..", "..", "bin")
	if _, err := os.Stat(filepath.Join(dir, "kontiki")); err != nil {
		return ""
	}
	return dir
}

// cgroupRoot is the cgroup of this run: its name carries the pid of the outer process, so that two
// runs on one machine do not share a tree.
func cgroupRoot() string { return "kontiki-e2e-" + os.Getenv(insideEnv) }

// runInside starts this test binary again in namespaces of its own. Death of this process kills
// the child, which is PID 1 of its namespace and takes every process of the run with it.
func runInside() int {
	runtime.LockOSThread() // Pdeathsig is sent when the thread that forked ends
	id := fmt.Sprint(os.Getpid())
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideEnv+"="+id)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	err := cmd.Run()
	removeCgroups("kontiki-e2e-" + id)
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e sandbox:", err)
		return 1
	}
	return 0
}

// prepareInside gives the new namespaces what a booted machine has: a /proc that matches the PID
// namespace, a private mount tree, and a loopback interface that is up.
func prepareInside() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return addUplink()
}

// addUplink makes the interface that a real machine would have towards its network. Endpoints may
// not have loopback addresses, so the node needs another one.
func addUplink() error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "uplink0"}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("add uplink0: %w", err)
	}
	addr, err := netlink.ParseAddr(nodeIP + "/24")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(bridge, addr); err != nil {
		return fmt.Errorf("give uplink0 its address: %w", err)
	}
	return netlink.LinkSetUp(bridge)
}

// removeCgroups removes the run's cgroup directories, deepest first, in every hierarchy.
func removeCgroups(name string) {
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		roots, _ := filepath.Glob(pattern)
		for _, root := range roots {
			var dirs []string
			_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for i := len(dirs) - 1; i >= 0; i-- {
				_ = unix.Rmdir(dirs[i])
			}
		}
	}
}

// processAlive reports whether pid runs. As PID 1 of its namespace this process inherits orphans (the shims
// of a killed kontiki). They stay zombies after they end, so tests must look at a process's state,
// not only at whether its pid exists.
func processAlive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, found := strings.Cut(string(status), ") ")
	return found && !strings.HasPrefix(after, "Z")
}
