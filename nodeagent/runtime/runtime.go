package runtime

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/internal/filelock"
	"kontiki/nodeagent/image"
	"kontiki/nodeagent/network"
)

// Runtime is a CRI runtime. Its methods may be called concurrently.
//
// Lock order: a sandbox's op, a container's op, mu. The op locks are held over slow steps
// of one object; mu only over changes of the maps and of the fields that say so.
type Runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	cfg     Config
	log     *slog.Logger
	host    hostLimits
	images  *image.Store
	network *network.Network
	streams *streamServer
	lock    *os.File // held while open: one runtime per state directory
	events  events
	watched sync.WaitGroup // one for each container with a living shim, and the keeper of the network
	unkeep  context.CancelFunc

	mu         sync.RWMutex // guards the fields below
	sandboxes  map[string]*sandbox
	containers map[string]*container
	closed     bool
}

// New opens the runtime's directories, finds the sandboxes and containers of an earlier
// life again and removes what a crash left half done.
func New(cfg Config) (*Runtime, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		cfg: cfg, log: cfg.Log, host: probeHost(),
		sandboxes: map[string]*sandbox{}, containers: map[string]*container{},
	}
	if r.lock, err = lockDir(cfg.StateDir); err != nil {
		return nil, err
	}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// open opens what a Runtime is made of, in the order in which the parts need each other.
func (r *Runtime) open() (err error) {
	cfg := r.cfg
	if r.images, err = image.Open(image.Config{Dir: filepath.Join(cfg.Root, "images"), HostsFile: cfg.HostsFile, Log: cfg.Log}); err != nil {
		return err
	}
	r.network, err = network.New(network.Config{
		ConfDir: cfg.CNIConfDir, BinDirs: cfg.CNIBinDirs, StateDir: filepath.Join(cfg.StateDir, "cni"), Bridge: cfg.Bridge,
		Foreign: cfg.ForeignCNI, ClusterCIDRs: cfg.ClusterCIDRs, Address: cfg.Address, Log: cfg.Log,
	})
	if err != nil {
		return err
	}
	if cfg.PodCIDR != "" {
		if err := r.network.SetPodCIDR(context.Background(), cfg.PodCIDR); err != nil {
			return err
		}
	}
	if err := r.restore(context.Background()); err != nil {
		return fmt.Errorf("runtime: restore: %w", err)
	}
	keep, cancel := context.WithCancel(context.Background())
	r.unkeep = cancel
	r.watched.Go(func() { r.checkNetwork(keep); r.network.Keep(keep) })
	r.streams, err = startStreams(cfg.StreamAddr, r)
	return err
}

// lockDir takes the directory for this process. The kernel gives it back when the process
// ends, however it ends; shims do not inherit it.
func lockDir(dir string) (*os.File, error) {
	f, err := filelock.Lock(filepath.Join(dir, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("runtime: %s: %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	return f, nil
}

// Images is the node's image store, for imports that do not come through CRI.
func (r *Runtime) Images() *image.Store { return r.images }

// Close lets go of everything without touching a container: they run on, and the next
// New finds them.
func (r *Runtime) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	for _, c := range r.containers {
		if c.watch != nil {
			c.watch.Close()
		}
	}
	r.mu.Unlock()
	r.events.close()
	if r.streams != nil {
		r.streams.close()
	}
	if r.unkeep != nil {
		r.unkeep()
	}
	r.watched.Wait()
	return r.lock.Close()
}

// newID is a fresh random id for a sandbox or container.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// minPrefix is how much of an id a person must type.
const minPrefix = 6

// lookup finds the object whose id is key, or begins with it if only one does.
func lookup[T any](kind string, objects map[string]T, key string) (T, error) {
	if o, ok := objects[key]; ok {
		return o, nil
	}
	var found []T
	if len(key) >= minPrefix {
		for id, o := range objects {
			if strings.HasPrefix(id, key) {
				found = append(found, o)
			}
		}
	}
	if len(found) != 1 {
		var none T
		return none, fmt.Errorf("%s %q: %w", kind, key, ErrNotFound)
	}
	return found[0], nil
}

func (r *Runtime) sandbox(id string) (*sandbox, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return lookup("sandbox", r.sandboxes, id)
}

func (r *Runtime) container(id string) (*container, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return lookup("container", r.containers, id)
}

// containersOf lists the containers of a sandbox.
func (r *Runtime) containersOf(sandboxID string) []*container {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []*container
	for _, c := range r.containers {
		if c.rec.SandboxID == sandboxID {
			out = append(out, c)
		}
	}
	return out
}
