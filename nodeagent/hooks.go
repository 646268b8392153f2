package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/probe"
)

// hookState is where a container is with its lifecycle hooks. It is lost with the agent: then a postStart hook counts as
// run (they run at least once and may be cut), and a preStop hook may run a second time.
type hookState int

const (
	hookNone    hookState = iota
	hookRunning           // postStart is running
	hookStarted           // postStart is over
	hookStopped           // preStop is over
)

func (w *worker) hook(id string) hookState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hooks[id]
}

func (w *worker) setHook(id string, s hookState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooks[id] = s
}

// postStart runs the hook of a container that was just started. Until it is over the container counts as not started
// up; if it fails the container is killed, and restarted as its policy says.
func (w *worker) postStart(ctx context.Context, pod *corev1.Pod, c *corev1.Container, id string) {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return
	}
	w.setHook(id, hookRunning)
	w.tasks.start(ctx, "postStart/"+id, func(ctx context.Context) {
		err := w.runHook(ctx, pod, c, id, c.Lifecycle.PostStart)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.a.event(pod, c, corev1.EventTypeWarning, "FailedPostStartHook", fmt.Sprintf("PostStartHook failed: %v", err))
			w.a.event(pod, c, corev1.EventTypeNormal, "Killing", "FailedPostStartHook")
			_, err = w.a.cri.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: specGrace(pod)})
			if err != nil {
				w.log.Warn("container could not be stopped", "container", c.Name, "err", err)
			}
		}
		w.setHook(id, hookStarted)
	})
}

// runHook runs one lifecycle handler.
func (w *worker) runHook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, id string, h *corev1.LifecycleHandler) error {
	switch {
	case w.a.cfg.StatusOnly:
		return nil
	case h.Exec != nil:
		timeout := 24 * time.Hour
		if end, ok := ctx.Deadline(); ok {
			timeout = time.Until(end)
		}
		output, code, err := w.a.cri.exec(ctx, id, h.Exec.Command, timeout)
		if err == nil && code != 0 {
			err = fmt.Errorf("command %q exited with %d: %s", h.Exec.Command, code, output)
		}
		return err
	case h.HTTPGet != nil:
		ip := pod.Status.PodIP
		if state, err := w.a.cri.podState(ctx, w.uid); err == nil {
			if ips := state.PodIPs(pod, w.a.hostIPs()); len(ips) > 0 {
				ip = ips[0]
			}
		}
		return probe.HTTPGet(ctx, h.HTTPGet, probe.Target{ContainerID: id, PodIP: ip, Container: c})
	case h.Sleep != nil:
		sleep(ctx, time.Duration(h.Sleep.Seconds)*time.Second)
		return ctx.Err()
	}
	return errors.New("invalid handler")
}
