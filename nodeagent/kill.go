package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podstate"
)

// minStopTimeout is what a container gets between SIGTERM and SIGKILL when its preStop hook has used up the grace
// period (Pod Lifecycle: a one-off extension of 2 seconds).
const minStopTimeout = 2 * time.Second

// stopSlack is how long a stop may take beyond its timeout before the call is given up and made again.
const stopSlack = 30 * time.Second

// killGrace is the grace period of a container that is killed to be restarted.
func killGrace(pod *corev1.Pod, k podstate.Kill) time.Duration {
	if k.Grace != nil {
		return time.Duration(*k.Grace) * time.Second
	}
	return time.Duration(specGrace(pod)) * time.Second
}

// kill has a task run the container's preStop hook and stop it, both before the deadline. A task that works towards
// a later deadline is cut short and made anew: a second delete with a shorter grace period takes effect at once.
func (w *worker) kill(ctx context.Context, pod *corev1.Pod, k podstate.Kill, end time.Time) {
	id := k.Instance.Id
	key := "kill/" + id
	had, known := w.kills[id]
	if known && w.tasks.has(key) {
		if end.Before(had) {
			w.kills[id] = end
			w.tasks.cancel(key) // its end kicks the worker, which comes here again
		}
		return
	}
	if known && had.Before(end) {
		end = had
	}
	w.kills[id] = end
	first := !known
	w.tasks.start(ctx, key, func(ctx context.Context) {
		if first {
			w.a.event(pod, k.Container, corev1.EventTypeNormal, "Killing", k.Message)
		}
		if err := w.stopContainer(ctx, pod, k, end); err != nil && ctx.Err() == nil {
			w.log.Warn("container could not be stopped", "container", k.Container.Name, "err", err)
			sleep(ctx, time.Second) // the worker tries again when this task ends
		}
	})
}

func (w *worker) stopContainer(ctx context.Context, pod *corev1.Pod, k podstate.Kill, end time.Time) error {
	least := time.Duration(0)
	if w.preStop(ctx, pod, k, end) {
		least = minStopTimeout
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	timeout := max(time.Until(end), least)
	ctx, cancel := context.WithTimeout(ctx, timeout+stopSlack)
	defer cancel()
	seconds := int64((timeout + time.Second - 1) / time.Second)
	_, err := w.a.cri.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: k.Instance.Id, Timeout: seconds})
	if err != nil && !isGone(err) {
		return fmt.Errorf("stop container: %w", err)
	}
	return nil
}

// preStop runs the hook, if there is one that has not been run, and says whether it was cut by the deadline.
func (w *worker) preStop(ctx context.Context, pod *corev1.Pod, k podstate.Kill, end time.Time) (cut bool) {
	c, id := k.Container, k.Instance.Id
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || w.hook(id) == hookStopped {
		return false
	}
	hookCtx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	err := w.runHook(hookCtx, pod, c, id, c.Lifecycle.PreStop)
	if ctx.Err() != nil { // a shorter grace period: the next task goes on with what is left of it
		return false
	}
	w.setHook(id, hookStopped)
	switch {
	case errors.Is(hookCtx.Err(), context.DeadlineExceeded):
		w.a.event(pod, c, corev1.EventTypeWarning, "FailedPreStopHook",
			"PreStopHook did not complete within the grace period and was cut")
		return true
	case err != nil:
		w.a.event(pod, c, corev1.EventTypeWarning, "FailedPreStopHook", fmt.Sprintf("PreStopHook failed: %v", err))
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
