package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

const (
	// prefix begins all names that a lab has on this machine.
	prefix = "kontiki-lab"
	// stateFile is where a lab is written down, in its directory.
	stateFile = "lab.json"
)

// network is the lab's; hosts count from its eleventh address.
var network = netip.MustParsePrefix("10.89.0.0/24")

// Lab is a cluster on this machine.
type Lab struct {
	Dir     string    `json:"-"`
	Program string    `json:"program"` // the kontiki that the machines run
	Runtime string    `json:"runtime"` // their --node-runtime
	Started time.Time `json:"started"`
	Cgroups string    `json:"cgroups"` // begins the names of the machines' cgroups: namespaces do not part those of two labs
	Hosts   []*Host   `json:"hosts"`
}

// Open reads the lab in a directory; ErrNoLab if there is none.
func Open(dir string) (*Lab, error) {
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoLab
	}
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	l := &Lab{Dir: dir}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", filepath.Join(dir, stateFile), err)
	}
	for _, h := range l.Hosts {
		h.lab = l
	}
	return l, nil
}

// save writes the lab down, all or nothing.
func (l *Lab) save() error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	path := filepath.Join(l.Dir, stateFile)
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return os.Rename(path+".tmp", path)
}

// Host finds a machine by its name. The error wraps ErrNoHost and names those that there are.
func (l *Lab) Host(name string) (*Host, error) {
	i := slices.IndexFunc(l.Hosts, func(h *Host) bool { return h.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: %q (there are %s)", ErrNoHost, name, strings.Join(l.Names(), ", "))
	}
	return l.Hosts[i], nil
}

// Names lists the machines.
func (l *Lab) Names() []string {
	names := make([]string, len(l.Hosts))
	for i, h := range l.Hosts {
		names[i] = h.Name
	}
	return names
}

// Kubeconfig is that of the lab's administrator, who reaches the first server's API from this machine and from each of the
// lab's.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// writeKubeconfig makes it of the first server's own, which is for that machine alone. The error wraps fs.ErrNotExist until
// there is one.
func (l *Lab) writeKubeconfig() error {
	config, err := clientcmd.LoadFromFile(filepath.Join(l.Hosts[0].dataDir(), "admin.kubeconfig"))
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = l.Hosts[0].url()
	}
	return clientcmd.WriteToFile(*config, l.Kubeconfig())
}
