package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kontiki/internal/filelock"
)

const (
	// prefix begins all names that a lab has on this machine.
	prefix = "kontiki-lab"
	// stateFile is where a lab is written down, in its directory.
	stateFile = "lab.json"
	// lockFile is held by who changes the lab.
	lockFile = "lock"
)

// network is the lab's; hosts count from its eleventh address.
var network = netip.MustParsePrefix("10.89.0.0/24")

// frontAddress is this machine's own in the lab; see front.go.
var frontAddress = network.Addr().Next()

// Lab is a cluster on this machine.
type Lab struct {
	Dir         string    `json:"-"`
	Program     string    `json:"program"` // the kontiki that the machines run
	Runtime     string    `json:"runtime"` // their --node-runtime
	ServerFlags []string  `json:"serverFlags,omitempty"`
	AgentFlags  []string  `json:"agentFlags,omitempty"`
	Started     time.Time `json:"started"`
	// Place is the network namespace, of one run of this machine, that has the bridge.
	Place string  `json:"place,omitempty"`
	Front process `json:"front"`
	Hosts []*Host `json:"hosts"`

	bridged bool // the bridge is this lab's
}

// Open reads the lab in a directory; ErrNoLab if there is none, ErrElsewhere if this process is not where it was made. Whoever
// changes it uses Change.
func Open(dir string) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoLab
	}
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	l := &Lab{Dir: dir, bridged: true}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", filepath.Join(dir, stateFile), err)
	}
	for _, h := range l.Hosts {
		h.lab = l
	}
	if here := place(); l.isElsewhere(here) {
		return nil, fmt.Errorf("%w: %s is of %s, and this is %s", ErrElsewhere, dir, l.Place, here)
	}
	return l, nil
}

// place is the network namespace of this thread and the boot of its machine: the name of a namespace may be another's after that.
func place() string {
	space, _ := os.Readlink("/proc/thread-self/ns/net")
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return space + " of boot " + strings.TrimSpace(string(boot))
}

// isElsewhere says whether the lab's bridge is in another namespace than here. Of a boot that is over nothing is left anywhere.
func (l *Lab) isElsewhere(here string) bool {
	_, boot, known := strings.Cut(l.Place, " of boot ")
	return known && l.Place != here && strings.HasSuffix(here, boot)
}

// Change calls f with the lab in a directory while no other command changes it; it waits for one that does.
func Change(ctx context.Context, dir string, f func(*Lab) error) error {
	if _, err := Open(dir); err != nil { // nothing is made where there is no lab
		return err
	}
	lock, err := lockDir(ctx, dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	l, err := Open(dir) // as the last one left it
	if err != nil {
		return err
	}
	return f(l)
}

// lockDir has the lab in a directory for this process, until the file is closed.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	for {
		lock, err := filelock.Lock(filepath.Join(dir, lockFile))
		switch {
		case err == nil:
			return lock, nil
		case errors.Is(err, os.ErrNotExist):
			return nil, ErrNoLab
		case !errors.Is(err, filelock.ErrHeld) || ctx.Err() != nil:
			return nil, fmt.Errorf("lab: %w", err)
		}
	}
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
