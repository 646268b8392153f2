package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/runtime/shim"
)

// The reasons of an exit that no process gave (kubelet and kubectl show them as they are).
const (
	reasonStartError = "StartError"
	reasonLost       = "ContainerStatusUnknown"
)

// startErrorCode is the exit code of a container that runc could not start, as containerd
// has it; lostCode that of one whose shim died.
const (
	startErrorCode = 128
	lostCode       = 255
)

// StartContainer starts a created container. When it cannot be started, the container is
// exited with reason StartError, and the error says why.
func (r *Runtime) StartContainer(ctx context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	c.op.Lock()
	defer c.op.Unlock()
	if err := r.mayStart(c); err != nil {
		return nil, err
	}
	started, err := r.startShim(ctx, c)
	if err != nil {
		r.startFailed(c, err)
		return nil, fmt.Errorf("container %s: %w", c.rec.ID, err)
	}
	if err := r.follow(ctx, c, started); err != nil {
		// It runs, and ended before we could watch it, or its shim was killed: both are exits.
		r.log.Info("container ended right after its start", "container", c.rec.ID, "err", err)
		r.recordExit(c)
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

func (r *Runtime) mayStart(c *container) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return ErrClosed
	}
	if r.containers[c.rec.ID] != c {
		return fmt.Errorf("container %s: %w", c.rec.ID, ErrNotFound)
	}
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED {
		return fmt.Errorf("%w: container %s is %s", ErrState, c.rec.ID, c.state)
	}
	if s := r.sandboxes[c.rec.SandboxID]; s == nil || s.rec.Stopped {
		return fmt.Errorf("%w: sandbox %s is stopped", ErrState, c.rec.SandboxID)
	}
	return nil
}

// startShim runs the shim, which runs runc, and waits for its word.
func (r *Runtime) startShim(ctx context.Context, c *container) (shim.Started, error) {
	var started shim.Started
	spec := shim.Spec{
		ID: c.rec.ID, Runc: r.cfg.runc(), LogPath: c.rec.LogPath,
		Terminal: c.config.GetTty(), Stdin: c.config.GetStdin(), StdinOnce: c.config.GetStdinOnce(),
		OOMFile: r.oomFile(c.rec.Cgroup),
	}
	if err := shim.WriteFile(filepath.Join(c.dir, shim.SpecFile), spec); err != nil {
		return started, err
	}
	word, err := r.spawn(ctx, c)
	if err != nil {
		return started, err
	}
	if word != "ok" {
		return started, errors.New(word)
	}
	if found, err := shim.ReadFile(filepath.Join(c.dir, shim.StartedFile), &started); err != nil || !found {
		return started, fmt.Errorf("%s: found %v: %w", shim.StartedFile, found, err)
	}
	return started, nil
}

// spawn starts the shim in a session of its own and returns what it says on its status
// descriptor. If ctx ends first the shim is killed.
func (r *Runtime) spawn(ctx context.Context, c *container) (string, error) {
	status, child, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer status.Close()
	stderr, err := os.Create(filepath.Join(c.dir, shim.StderrFile))
	if err != nil {
		child.Close()
		return "", err
	}
	defer stderr.Close()
	cmd := exec.Command(r.cfg.ShimPath, "run")
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = c.dir, stderr, []*os.File{child}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	group, err := r.startInShimCgroup(c.rec.SandboxID, cmd.SysProcAttr)
	if err != nil {
		child.Close()
		return "", err
	}
	defer group.Close()
	err = cmd.Start()
	child.Close()
	if err != nil {
		return "", fmt.Errorf("shim: %w", err)
	}
	go func() { _ = cmd.Wait() }() // reaps it; it ends with its container
	stop := context.AfterFunc(ctx, func() {
		_ = cmd.Process.Kill()
		status.Close()
	})
	defer stop()
	word, err := io.ReadAll(status)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err == nil && len(word) == 0 {
		text, _ := os.ReadFile(filepath.Join(c.dir, shim.StderrFile))
		err = fmt.Errorf("shim ended without a word: %.1000s", text)
	}
	return string(word), err
}

// startFailed removes what runc may have left and records the failure as an exit.
func (r *Runtime) startFailed(c *container, cause error) {
	r.runcDelete(c)
	now := time.Now()
	exit := shim.Exit{Code: startErrorCode, FinishedAt: now, Reason: reasonStartError, Message: cause.Error()}
	if err := shim.WriteFile(filepath.Join(c.dir, shim.ExitFile), exit); err != nil {
		r.log.Error("exit status not kept", "container", c.rec.ID, "err", err)
	}
	r.setExited(c, shim.Started{}, exit)
}

// runcDelete kills whatever runc still knows of c.
func (r *Runtime) runcDelete(c *container) {
	argv := append(r.cfg.runc(), "delete", "--force", c.rec.ID)
	if err := command(exec.Command(argv[0], argv[1:]...)); err != nil {
		r.log.Warn("runc delete", "container", c.rec.ID, "err", err)
	}
}

// follow marks c as running and watches its shim.
func (r *Runtime) follow(ctx context.Context, c *container, started shim.Started) error {
	ended, stop, err := c.shim().Watch(ctx)
	r.mu.Lock()
	c.started, c.state = started, runtimeapi.ContainerState_CONTAINER_RUNNING
	closed := r.closed
	if err == nil && !closed {
		c.watch = stop
		r.watched.Add(1)
	}
	r.mu.Unlock()
	if err == nil && closed {
		return stop.Close()
	}
	r.publish(c.rec.SandboxID, c.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	if err != nil {
		return err
	}
	go func() {
		defer r.watched.Done()
		<-ended
		r.mu.RLock()
		closed := r.closed
		r.mu.RUnlock()
		if !closed { // else the connection ended, not the shim
			r.recordExit(c)
		}
	}()
	return nil
}

// recordExit takes the exit status that the shim left. A shim that was killed left none:
// then the container is ended too, and its true status will never be known.
func (r *Runtime) recordExit(c *container) {
	var exit shim.Exit
	found, err := shim.ReadFile(filepath.Join(c.dir, shim.ExitFile), &exit)
	if err != nil || !found {
		r.runcDelete(c)
		exit = shim.Exit{Code: lostCode, FinishedAt: time.Now(), Reason: reasonLost, Message: "the container's shim is gone"}
		if err := shim.WriteFile(filepath.Join(c.dir, shim.ExitFile), exit); err != nil {
			r.log.Error("exit status not kept", "container", c.rec.ID, "err", err)
		}
	}
	r.mu.RLock()
	started := c.started
	r.mu.RUnlock()
	r.setExited(c, started, exit)
}

func (r *Runtime) setExited(c *container, started shim.Started, exit shim.Exit) {
	r.mu.Lock()
	c.state, c.started, c.exit, c.watch = runtimeapi.ContainerState_CONTAINER_EXITED, started, exit, nil
	close(c.exited)
	r.mu.Unlock()
	r.publish(c.rec.SandboxID, c.rec.ID, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}
