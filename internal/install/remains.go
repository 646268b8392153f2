package install

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// What a node leaves on a machine beside its files, all of which have names of its own.
var (
	links       = []string{"kontiki0", "kontiki-vxlan"}
	tablePrefix = "kontiki-"
)

// RemoveRemains takes away what runs and what is mounted of a node that does not run any more: processes in its cgroups or
// with files in its data directory, mounts below that, cgroups, the bridge and what is attached to it, nftables.
func RemoveRemains(ctx context.Context, dataDir, cgroupRoot string) error {
	return errors.Join(endProcesses(dataDir, cgroupRoot), unmountBelow(dataDir), removeCgroups(cgroupRoot), removeLinks(), removeTables(ctx))
}

// endProcesses kills the containers and their shims.
func endProcesses(dataDir, cgroupRoot string) error {
	for range 100 {
		pids := processesOf(dataDir, cgroupRoot)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // who is gone is gone
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("processes of the node do not end")
}

// processesOf are those in cgroups below the root, and the shims, whose arguments name the data directory.
func processesOf(dataDir, cgroupRoot string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		program, _, _ := strings.Cut(string(command), "\x00")
		isShim := filepath.Base(program) == "kontiki-shim" && strings.Contains(string(command), dataDir+"/")
		if pid != os.Getpid() && (isShim || strings.Contains(string(groups), ":/"+cgroupRoot+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unmountBelow takes away all mounts below a directory, the last ones first. The kernel has them under the directory's real
// name: what stayed mounted would be emptied with the directory.
func unmountBelow(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	var errs []error
	for _, point := range slices.Backward(points) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// removeCgroups removes the node's cgroups of both versions, the innermost first.
func removeCgroups(root string) error {
	if !filepath.IsLocal(root) || root == "." {
		return fmt.Errorf("%q is no cgroup of a node", root)
	}
	var errs []error
	for _, pattern := range []string{"/sys/fs/cgroup/" + root, "/sys/fs/cgroup/*/" + root} {
		trees, _ := filepath.Glob(pattern)
		for _, tree := range trees {
			var dirs []string
			_ = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for _, dir := range slices.Backward(dirs) {
				errs = append(errs, rmdir(dir))
			}
		}
	}
	return errors.Join(errs...)
}

// rmdir removes a cgroup, whose last process may not be counted out yet.
func rmdir(dir string) error {
	var err error
	for range 100 {
		if err = syscall.Rmdir(dir); err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("cgroup %s: %w", dir, err)
}

func removeLinks() error {
	var errs []error
	for _, name := range links {
		link, err := netlink.LinkByName(name)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			continue
		}
		if err == nil {
			err = netlink.LinkDel(link)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("link %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// removeTables deletes the nftables whose names begin as a node's do.
func removeTables(ctx context.Context) error {
	nft, err := exec.LookPath("nft")
	if err != nil {
		return nil // then there are none
	}
	out, err := exec.CommandContext(ctx, nft, "-j", "list", "tables").Output()
	if err != nil {
		return fmt.Errorf("nft list tables: %w", err)
	}
	var listed struct {
		Nftables []struct {
			Table *struct{ Family, Name string } `json:"table"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		return fmt.Errorf("nft list tables: %w", err)
	}
	var errs []error
	for _, one := range listed.Nftables {
		if t := one.Table; t != nil && strings.HasPrefix(t.Name, tablePrefix) {
			if out, err := exec.CommandContext(ctx, nft, "delete", "table", t.Family, t.Name).CombinedOutput(); err != nil {
				errs = append(errs, fmt.Errorf("nft delete table %s: %w: %s", t.Name, err, out))
			}
		}
	}
	return errors.Join(errs...)
}
