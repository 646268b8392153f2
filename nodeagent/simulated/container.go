package simulated

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const annotationPrefix = "simulated.kontiki.io/"

// killedCode is the exit code of a process that SIGKILL ended: 128 + 9.
const killedCode = 137

// container is one container. Its exported fields are kept in the state file.
type container struct {
	ID, SandboxID              string
	Config                     *runtimeapi.ContainerConfig
	State                      runtimeapi.ContainerState
	Created, Started, Finished int64 // nanoseconds
	ExitCode                   int32
	Reason                     string

	timer *time.Timer   // its own exit, if one is planned
	ended chan struct{} // closed by exit
}

func (c *container) stopTimer() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// option reads a steering annotation of c: the container's own one, else the pod's.
func (r *Runtime) option(c *container, name string) string {
	notes := r.sandboxes[c.SandboxID].Config.Annotations
	if v, ok := notes[annotationPrefix+name+"."+c.Config.Metadata.Name]; ok {
		return v
	}
	return notes[annotationPrefix+name]
}

func (r *Runtime) duration(c *container, name string) (time.Duration, bool) {
	d, err := time.ParseDuration(r.option(c, name))
	return d, err == nil
}

// CreateContainer records a container in a ready sandbox.
func (r *Runtime) CreateContainer(_ context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	if req.GetConfig().GetMetadata() == nil || req.Config.GetImage() == nil {
		return nil, status.Error(codes.InvalidArgument, "container config without metadata or image")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sandboxes[req.PodSandboxId]
	if !ok {
		return nil, ErrNotFound
	}
	if !s.Ready {
		return nil, status.Error(codes.FailedPrecondition, "the sandbox is not ready")
	}
	c := &container{ID: newID(), SandboxID: s.ID, Config: req.Config,
		Created: time.Now().UnixNano(), ended: make(chan struct{})}
	r.containers[c.ID] = c
	r.save()
	r.emit(c, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &runtimeapi.CreateContainerResponse{ContainerId: c.ID}, nil
}

// StartContainer marks a created container as running and plans its exit if an annotation asks for one.
func (r *Runtime) StartContainer(_ context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[req.ContainerId]
	if !ok {
		return nil, ErrNotFound
	}
	if c.State != runtimeapi.ContainerState_CONTAINER_CREATED {
		return nil, status.Errorf(codes.FailedPrecondition, "the container is %s", c.State)
	}
	c.State, c.Started = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	if err := r.writeLog(c); err != nil {
		return nil, err
	}
	if after, ok := r.duration(c, "exit-after"); ok {
		r.exitLater(c, after)
	}
	r.save()
	r.emit(c, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &runtimeapi.StartContainerResponse{}, nil
}

func (r *Runtime) exitLater(c *container, after time.Duration) {
	c.timer = time.AfterFunc(after, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		code, _ := strconv.ParseInt(r.option(c, "exit-code"), 10, 32)
		if r.option(c, "oom") == "true" {
			c.Reason, code = "OOMKilled", killedCode
		}
		r.exit(c, int32(code))
		r.save()
	})
}

// exit ends a running container. The caller holds r.mu and saves.
func (r *Runtime) exit(c *container, code int32) {
	if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	c.stopTimer()
	c.State, c.Finished, c.ExitCode = runtimeapi.ContainerState_CONTAINER_EXITED, time.Now().UnixNano(), code
	if c.Reason == "" {
		c.Reason = "Completed"
		if code != 0 {
			c.Reason = "Error"
		}
	}
	close(c.ended)
	r.emit(c, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

// StopContainer ends a container cleanly, at once or after its stop-after annotation, and kills it
// when the timeout (seconds) comes first.
func (r *Runtime) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	r.mu.Lock()
	c, ok := r.containers[req.ContainerId]
	if !ok || c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		r.mu.Unlock()
		return &runtimeapi.StopContainerResponse{}, nil
	}
	needs, _ := r.duration(c, "stop-after")
	r.mu.Unlock()

	code, grace := int32(0), time.Duration(req.Timeout)*time.Second
	if needs > grace {
		needs, code = grace, killedCode
	}
	timer := time.NewTimer(needs)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exit(c, code)
	r.save()
	return &runtimeapi.StopContainerResponse{}, nil
}

// RemoveContainer kills and forgets a container. Unknown ids are no error (CRI).
func (r *Runtime) RemoveContainer(_ context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.containers[req.ContainerId]; ok {
		r.exit(c, killedCode)
		delete(r.containers, c.ID)
		r.save()
		r.emit(c, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	}
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// writeLog writes the one line that the container ever prints, in the CRI log format.
func (r *Runtime) writeLog(c *container) error {
	dir := r.sandboxes[c.SandboxID].Config.LogDirectory
	if dir == "" || c.Config.LogPath == "" {
		return nil
	}
	path := filepath.Join(dir, c.Config.LogPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("container log: %w", err)
	}
	image := cmp.Or(c.Config.Image.UserSpecifiedImage, c.Config.Image.Image)
	line := fmt.Sprintf("%s stdout F simulated container %s (%s) started\n",
		time.Unix(0, c.Started).Format(time.RFC3339Nano), c.Config.Metadata.Name, image)
	return os.WriteFile(path, []byte(line), 0o640)
}

// ReopenContainerLog starts the log file anew after a rotation.
func (r *Runtime) ReopenContainerLog(_ context.Context, req *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[req.ContainerId]
	if !ok {
		return nil, ErrNotFound
	}
	return &runtimeapi.ReopenContainerLogResponse{}, r.writeLog(c)
}
