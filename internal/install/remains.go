package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"kontiki/internal/remains"
	"kontiki/nodeagent/network"
)

// What a node leaves on a machine beside its files, all of which have names of its own.
var (
	links       = []string{"kontiki0", "kontiki-vxlan"}
	tablePrefix = "kontiki-"
)

// RemoveRemains takes away what runs and what is mounted of a node that does not run any more: processes in its cgroups or
// with files in its data directory, mounts below that, cgroups, the bridge and what is attached to it, nftables, and rules in iptables.
func RemoveRemains(ctx context.Context, dataDir, cgroupRoot string) error {
	return errors.Join(remains.Kill(isOf(dataDir, cgroupRoot)), remains.Unmount(dataDir), remains.RemoveCgroups(cgroupRoot), removeLinks(), removeTables(ctx),
		network.RemoveAccepting(ctx))
}

// isOf says whether a process is in a cgroup below the root, or is a shim, whose arguments name the data directory.
func isOf(dataDir, cgroupRoot string) func(remains.Process) bool {
	return func(p remains.Process) bool {
		isShim := filepath.Base(p.Args[0]) == "kontiki-shim" && strings.Contains(strings.Join(p.Args, "\x00"), dataDir+"/")
		return isShim || strings.Contains(p.Cgroups, ":/"+cgroupRoot+"/")
	}
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
