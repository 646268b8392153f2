package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
)

// Config says where a runtime keeps its things and which programs it uses. Two runtimes on
// one machine must differ in Root, StateDir and CgroupRoot; in one network namespace, in
// Bridge and CNIConfDir too.
type Config struct {
	Root       string   // images (durable); required
	StateDir   string   // sandboxes, containers, CNI state; required
	RuncPath   string   // an OCI runtime with runc's command line; "runc" on PATH when empty
	ShimPath   string   // kontiki-shim; required
	CgroupRoot string   // parent cgroup of sandboxes whose config names none; /kontiki when empty
	CNIBinDirs []string // CNI plugins, the first that has one counts; /opt/cni/bin when empty
	CNIConfDir string   // CNI configurations; StateDir/cni/net.d when empty
	Bridge     string   // of the default network; kontiki0 when empty
	PodCIDR    string   // the node's pod ranges, with a comma between, until UpdateRuntimeConfig tells another; may be empty
	// ForeignCNI has a network add-on bring the configuration to CNIConfDir: none is written.
	ForeignCNI bool
	// ClusterCIDRs are the ranges of the pods of all nodes, to which pods keep their address; may be empty.
	ClusterCIDRs []netip.Prefix
	Address      netip.Addr   // of the node: pods have the MTU of its interface; may be invalid
	HostsFile    string       // registry mirrors (package image); may be empty
	StreamAddr   string       // of exec, attach and port-forward; 127.0.0.1:0 when empty
	Log          *slog.Logger // nil discards
}

// withDefaults fills empty fields, makes paths absolute and checks the programs.
func (c Config) withDefaults() (Config, error) {
	if c.Root == "" || c.StateDir == "" || c.ShimPath == "" {
		return c, errors.New("runtime: Root, StateDir and ShimPath are required")
	}
	defaults := []struct {
		field *string
		value string
	}{
		{&c.RuncPath, "runc"},
		{&c.CgroupRoot, "/kontiki"},
		{&c.CNIConfDir, filepath.Join(c.StateDir, "cni", "net.d")},
		{&c.StreamAddr, "127.0.0.1:0"},
	}
	for _, d := range defaults {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	if len(c.CNIBinDirs) == 0 {
		c.CNIBinDirs = []string{"/opt/cni/bin"}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.CgroupRoot = path.Clean("/" + c.CgroupRoot)
	for _, p := range []*string{&c.RuncPath, &c.ShimPath} {
		found, err := exec.LookPath(*p)
		if err != nil {
			return c, fmt.Errorf("runtime: %w", err)
		}
		if *p, err = filepath.Abs(found); err != nil {
			return c, fmt.Errorf("runtime: %w", err)
		}
	}
	c.CNIBinDirs = slices.Clone(c.CNIBinDirs)
	paths := []*string{&c.Root, &c.StateDir, &c.CNIConfDir}
	for i := range c.CNIBinDirs {
		paths = append(paths, &c.CNIBinDirs[i])
	}
	for _, p := range paths {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return c, fmt.Errorf("runtime: %w", err)
		}
		*p = abs
	}
	for _, dir := range []string{c.Root, c.sandboxes(), c.containers(), c.runcRoot()} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return c, fmt.Errorf("runtime: %w", err)
		}
	}
	return c, nil
}

func (c Config) sandboxes() string  { return filepath.Join(c.StateDir, "sandboxes") }
func (c Config) containers() string { return filepath.Join(c.StateDir, "containers") }
func (c Config) runcRoot() string   { return filepath.Join(c.StateDir, "runc") }

// runc is the command line that every use of runc begins with.
func (c Config) runc() []string { return []string{c.RuncPath, "--root", c.runcRoot()} }
