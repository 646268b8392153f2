package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/image"
	"kontiki/nodeagent/runtime/shim"
)

// killLimit is how long a killed container may take to go: a process in an
// uninterruptible system call cannot be waited for for ever.
const killLimit = 30 * time.Second

// StopContainer sends the container's stop signal, waits for at most Timeout seconds and
// then kills. It returns as soon as the container has ended. Calls for one container run
// side by side, so that a later one can shorten the grace period of an earlier one. An
// unknown container counts as stopped (CRI).
func (r *Runtime) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	c, err := r.container(req.GetContainerId())
	if errors.Is(err, ErrNotFound) {
		return &runtimeapi.StopContainerResponse{}, nil
	}
	if !r.mustStop(c) {
		return &runtimeapi.StopContainerResponse{}, nil
	}
	if grace := time.Duration(req.GetTimeout()) * time.Second; grace > 0 {
		ended, err := r.stopGently(ctx, c, grace)
		if err != nil || ended {
			return &runtimeapi.StopContainerResponse{}, err
		}
	}
	return &runtimeapi.StopContainerResponse{}, r.kill(ctx, c)
}

// mustStop waits for a start in progress and says whether c runs.
func (r *Runtime) mustStop(c *container) bool {
	c.op.Lock()
	defer c.op.Unlock()
	return r.running(c)
}

func (r *Runtime) running(c *container) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return c.state == runtimeapi.ContainerState_CONTAINER_RUNNING
}

func (r *Runtime) stopGently(ctx context.Context, c *container, grace time.Duration) (ended bool, err error) {
	if err := r.signal(ctx, c, unix.SignalNum(c.rec.StopSignal)); err != nil {
		return false, err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// kill ends c now, if it runs, and waits until nothing of it is left.
func (r *Runtime) kill(ctx context.Context, c *container) error {
	if !r.mustStop(c) {
		return nil
	}
	if err := r.signal(ctx, c, unix.SIGKILL); err != nil {
		return err
	}
	timer := time.NewTimer(killLimit)
	defer timer.Stop()
	select {
	case <-c.exited:
		return nil
	case <-timer.C:
		return fmt.Errorf("container %s still runs %v after SIGKILL: %w", c.rec.ID, killLimit, context.DeadlineExceeded)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signal goes through the shim, which knows whether the process is still the same one. A
// shim that is gone has taken the container with it, or recordExit is about to.
func (r *Runtime) signal(ctx context.Context, c *container, sig unix.Signal) error {
	err := c.shim().Kill(ctx, int(sig))
	if errors.Is(err, shim.ErrGone) {
		return nil
	}
	return err
}

// stopSignal is the name of the signal that asks the container to end: the pod's wish,
// the image's, else SIGTERM.
func stopSignal(config *runtimeapi.ContainerConfig, img *image.Image) string {
	if s := config.GetStopSignal(); s != runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return checkedSignal(strings.TrimPrefix(s.String(), "SIGNAL_"))
	}
	return checkedSignal(img.Config.Config.StopSignal)
}

// checkedSignal reads TERM, SIGTERM or 15; what is no signal becomes SIGTERM.
func checkedSignal(s string) string {
	if s = strings.ToUpper(s); s != "" && !strings.HasPrefix(s, "SIG") {
		s = "SIG" + s
	}
	if unix.SignalNum(s) != 0 {
		return s
	}
	var n int
	if _, err := fmt.Sscanf(s, "SIG%d", &n); err == nil {
		if name := unix.SignalName(unix.Signal(n)); name != "" {
			return name
		}
	}
	return "SIGTERM"
}
