package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/encoding/protojson"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/image"
	"kontiki/nodeagent/runtime/shim"
)

// container is one container of a sandbox, from CreateContainer to RemoveContainer.
//
//	created ── StartContainer ──▶ running ── process 1 ends ──▶ exited
//	   └────── the start fails ───────────────────────────────────▲
type container struct {
	dir string
	rec containerRecord // never changes

	// op is held over starting, updating and removing. It comes after the sandbox's op and
	// before Runtime.mu. Stopping does not take it: a second StopContainer with a shorter
	// grace period must get through.
	op sync.Mutex

	exited chan struct{} // closed once exit is set

	// Guarded by Runtime.mu:
	config  *runtimeapi.ContainerConfig // replaced when resources change
	state   runtimeapi.ContainerState
	started shim.Started
	exit    shim.Exit
	watch   io.Closer // the connection that tells of the shim's end; nil without a shim
}

// containerRecord is what container.json keeps beside the configuration.
type containerRecord struct {
	ID         string     `json:"id"`
	SandboxID  string     `json:"sandboxID"`
	CreatedAt  time.Time  `json:"createdAt"`
	ImageID    string     `json:"imageID"`
	ImageRef   string     `json:"imageRef"` // repository digest if there is one, else the id
	Chain      []string   `json:"chain"`    // layers that the root file system uses
	User       specs.User `json:"user"`
	StopSignal string     `json:"stopSignal"`
	LogPath    string     `json:"logPath,omitempty"`
	Cgroup     string     `json:"cgroup"`
}

// containerFileContent is container.json.
type containerFileContent struct {
	containerRecord
	Config json.RawMessage `json:"config"` // ContainerConfig, as protobuf's JSON
}

const containerFile = "container.json"

func (c *container) shim() shim.Client { return shim.Client{Dir: c.dir} }

// save writes container.json with config.
func (c *container) save(config *runtimeapi.ContainerConfig) error {
	raw, err := protojson.Marshal(config)
	if err != nil {
		return err
	}
	return shim.WriteFile(filepath.Join(c.dir, containerFile), &containerFileContent{c.rec, raw})
}

// CreateContainer prepares a container: root file system, OCI specification, record. runc
// comes in at the start; a start that fails leaves an exited container with the reason.
func (r *Runtime) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	config := req.GetConfig()
	if config.GetMetadata().GetName() == "" {
		return nil, fmt.Errorf("%w: container without metadata", ErrInvalid)
	}
	c := &container{config: config, state: runtimeapi.ContainerState_CONTAINER_CREATED, exited: make(chan struct{})}
	c.rec = containerRecord{ID: newID(), SandboxID: s.rec.ID, CreatedAt: time.Now()}
	c.dir = filepath.Join(r.cfg.containers(), c.rec.ID)
	err = r.images.Use(func() error {
		img, err := r.images.Get(config.GetImage().GetImage())
		if err != nil {
			return err
		}
		if err := r.create(s, c, img); err != nil {
			return errors.Join(err, c.removeDir())
		}
		return r.register(s, c)
	})
	if err != nil {
		return nil, fmt.Errorf("container %s: %w", config.GetMetadata().GetName(), err)
	}
	r.publish(s.rec.ID, c.rec.ID, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &runtimeapi.CreateContainerResponse{ContainerId: c.rec.ID}, nil
}

// register adds c to the map, unless its sandbox was stopped meanwhile.
func (r *Runtime) register(s *sandbox, c *container) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.rec.Stopped {
		return errors.Join(fmt.Errorf("%w: sandbox %s is stopped", ErrState, s.rec.ID), c.removeDir())
	}
	r.containers[c.rec.ID] = c
	return nil
}

// create makes everything in c.dir, the record last.
func (r *Runtime) create(s *sandbox, c *container, img *image.Image) error {
	if err := os.Mkdir(c.dir, 0o711); err != nil {
		return err
	}
	rootfs, err := r.images.MountRootfs(img, c.dir)
	if err != nil {
		return err
	}
	config := c.config
	c.rec.ImageID, c.rec.ImageRef, c.rec.Chain = img.ID, img.ID, img.Chain
	if len(img.Digests) > 0 {
		c.rec.ImageRef = img.Digests[0]
	}
	if config.GetLogPath() != "" && s.config.GetLogDirectory() != "" {
		c.rec.LogPath = filepath.Join(s.config.GetLogDirectory(), config.GetLogPath())
	}
	c.rec.StopSignal = stopSignal(config, img)
	c.rec.Cgroup = path.Join(r.cgroupParent(s), c.rec.ID)
	if c.rec.User, err = resolveUser(rootfs, img.Config.Config.User, config.GetLinux().GetSecurityContext()); err != nil {
		return err
	}
	spec, err := r.spec(s, c, img)
	if err != nil {
		return err
	}
	if err := shim.WriteFile(filepath.Join(c.dir, "config.json"), spec); err != nil {
		return err
	}
	return c.save(config)
}

// removeDir frees the root file system and deletes the directory, the record first.
func (c *container) removeDir() error {
	if err := os.Remove(filepath.Join(c.dir, containerFile)); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := image.UnmountRootfs(c.dir); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}

// RemoveContainer removes a container, killing it first if it runs. An unknown container
// counts as removed (CRI).
func (r *Runtime) RemoveContainer(ctx context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	c, err := r.container(req.GetContainerId())
	if errors.Is(err, ErrNotFound) {
		return &runtimeapi.RemoveContainerResponse{}, nil
	}
	return &runtimeapi.RemoveContainerResponse{}, r.removeContainer(ctx, c)
}

func (r *Runtime) removeContainer(ctx context.Context, c *container) error {
	if err := r.kill(ctx, c); err != nil {
		return fmt.Errorf("remove container %s: %w", c.rec.ID, err)
	}
	c.op.Lock()
	defer c.op.Unlock()
	if r.running(c) {
		return fmt.Errorf("%w: container %s was started while it was being removed", ErrState, c.rec.ID)
	}
	if err := c.removeDir(); err != nil {
		return fmt.Errorf("remove container %s: %w", c.rec.ID, err)
	}
	r.mu.Lock()
	delete(r.containers, c.rec.ID)
	r.mu.Unlock()
	r.publish(c.rec.SandboxID, c.rec.ID, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	if _, err := r.images.Get(c.rec.ImageID); err != nil {
		return r.pruneImages() // it was the last user of a removed image
	}
	return nil
}

// pruneImages deletes the layers that no image and no container uses.
func (r *Runtime) pruneImages() error {
	r.mu.RLock()
	keep := map[string]bool{}
	for _, c := range r.containers {
		for _, chain := range c.rec.Chain {
			keep[chain] = true
		}
	}
	r.mu.RUnlock()
	return r.images.Prune(keep)
}
