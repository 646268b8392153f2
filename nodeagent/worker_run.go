package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/podstate"
	"kontiki/nodeagent/probe"
	"kontiki/nodeagent/volume"
)

// maxRounds bounds how often one step plans anew after it has changed something: a sandbox, then containers.
const maxRounds = 4

// runPod brings a pod that shall run one step on.
//
// Not yet: admission by the node itself (it trusts the scheduler's arithmetic), eviction under pressure, in-place resize, the
// process namespace of an ephemeral container's target.
func (w *worker) runPod(ctx context.Context, pod *corev1.Pod, state *podstate.State) (wake time.Time, err error) {
	if !state.AnyRunning() && pod.Status.StartTime == nil {
		w.report(ctx, pod, w.observation(state)) // the pod is seen to be in hand before it is set up
	}
	if err := w.mountVolumes(ctx, pod, state); err != nil {
		w.a.event(pod, nil, corev1.EventTypeWarning, "FailedMount", err.Error())
		w.report(ctx, pod, w.observation(state))
		return wake, err
	}
	var plan *podstate.Plan
	waiting := map[string]podstate.Waiting{}
	for range maxRounds {
		w.syncProbes(ctx, pod, state)
		plan = podstate.Next(pod, state, w.result, time.Now())
		maps.Copy(waiting, plan.Waiting)
		changed, next, perr := w.perform(ctx, pod, state, plan, waiting)
		wake, err = earliest(plan.Wake, next), errors.Join(err, perr)
		if !changed || err != nil {
			break
		}
		if state, err = w.a.cri.podState(ctx, w.uid); err != nil {
			return wake, err
		}
	}
	w.syncProbes(ctx, pod, state)
	o := w.observation(state)
	o.Waiting, o.Terminal = waiting, plan.Finished
	w.report(ctx, pod, o)
	w.backOffEvents(pod, waiting)
	return earliest(earliest(wake, w.nextRefresh(pod)), activeDeadline(pod)), err
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// perform does what a plan says; changed asks for another round.
func (w *worker) perform(
	ctx context.Context, pod *corev1.Pod, state *podstate.State, plan *podstate.Plan, waiting map[string]podstate.Waiting,
) (changed bool, wake time.Time, err error) {
	for _, id := range plan.StopSandboxes {
		if err := w.stopSandbox(ctx, id); err != nil {
			return false, wake, err
		}
		changed = true
	}
	for _, k := range plan.Kill {
		w.kill(ctx, pod, k, time.Now().Add(killGrace(pod, k)))
	}
	if plan.CreateSandbox {
		err := w.createSandbox(ctx, pod, plan.Attempt)
		return err == nil, wake, err
	}
	if len(plan.Start) > 0 {
		if err := w.protect(ctx, pod, state); err != nil {
			return changed, wake, err
		}
	}
	for _, s := range plan.Start {
		ref, wait, next := w.ensureImage(ctx, pod, s)
		wake = earliest(wake, next)
		if wait != nil {
			waiting[s.Container.Name] = *wait
			continue
		}
		wait, err = w.start(ctx, pod, state, s, ref)
		if wait != nil {
			waiting[s.Container.Name] = *wait
		}
		if err != nil {
			return changed, wake, err
		}
		delete(waiting, s.Container.Name)
		changed = true
	}
	return changed, wake, nil
}

func (w *worker) createSandbox(ctx context.Context, pod *corev1.Pod, attempt uint32) error {
	ctx, cancel := context.WithTimeout(ctx, sandboxTimeout)
	defer cancel()
	config := w.sandboxConfig(pod, attempt)
	handler := ""
	if pod.Spec.RuntimeClassName != nil {
		handler = *pod.Spec.RuntimeClassName // Not yet: RuntimeClass objects; the name is the handler
	}
	if attempt > 0 {
		w.a.event(pod, nil, corev1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
	}
	if _, err := w.a.cri.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler}); err != nil {
		w.a.event(pod, nil, corev1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: "+plainError(err))
		return fmt.Errorf("create sandbox: %w", err)
	}
	return nil
}

// sandboxConfig is also what the runtime is given with each container.
func (w *worker) sandboxConfig(pod *corev1.Pod, attempt uint32) *runtimeapi.PodSandboxConfig {
	return podspec.SandboxConfig(pod, podspec.SandboxInput{
		Attempt: attempt, LogDir: w.a.logDir(pod), Node: w.a.cfg.NodeName,
		ClusterDomain: w.a.cfg.ClusterDomain, CgroupParent: w.a.cfg.CgroupParent,
		DNS: podspec.DNS(pod, podspec.DNSInput{ClusterDNS: w.a.cfg.ClusterDNS, ClusterDomain: w.a.cfg.ClusterDomain, Host: w.a.hostDNS()}),
	})
}

// mountVolumes makes the volumes once, and brings those whose content follows the API up to date from time to time.
// When a refresh fails what is there stays.
func (w *worker) mountVolumes(ctx context.Context, pod *corev1.Pod, state *podstate.State) error {
	fresh := w.volumes == nil
	if !fresh && (!volume.Refreshes(pod) || time.Since(w.mounted) < volumeRefresh) {
		return nil
	}
	in := volume.Input{Sources: w.a.objects.maxAge(refreshAge), Facts: w.facts(pod, state)}
	if fresh {
		in.Sources = w.a.objects.maxAge(0)
	}
	paths, err := w.a.volumes.Mount(ctx, pod, in)
	w.mounted = time.Now()
	switch {
	case err == nil:
		w.volumes = paths
	case !fresh || state.AnyRunning():
		w.log.Warn("volumes could not be refreshed", "err", err)
		return nil
	default:
		w.volumes = nil
	}
	return err
}

func (w *worker) nextRefresh(pod *corev1.Pod) time.Time {
	if volume.Refreshes(pod) {
		return w.mounted.Add(volumeRefresh)
	}
	return time.Time{}
}

func (w *worker) facts(pod *corev1.Pod, state *podstate.State) podspec.Facts {
	return podspec.Facts{HostIPs: w.a.hostIPs(), PodIPs: state.PodIPs(pod, w.a.hostIPs()), Allocatable: w.a.machine.allocatable()}
}

// syncProbes gives every running container of the pod its probes. Those whose postStart hook still runs wait.
func (w *worker) syncProbes(ctx context.Context, pod *corev1.Pod, state *podstate.State) {
	if w.a.cfg.StatusOnly {
		return
	}
	var running []probe.Instance
	ips := append(state.PodIPs(pod, w.a.hostIPs()), "")
	add := func(list []corev1.Container, known []corev1.ContainerStatus) {
		for i := range list {
			in := state.Latest(list[i].Name)
			if !in.Running() || w.hook(in.Id) == hookRunning {
				continue
			}
			r := probe.Instance{ID: in.Id, PodIP: ips[0], StartedAt: time.Unix(0, in.StartedAt), Container: &list[i]}
			for j := range known {
				if known[j].ContainerID == w.a.cri.name+"://"+in.Id {
					r.WasReady, r.WasStarted = known[j].Ready, known[j].Started != nil && *known[j].Started
				}
			}
			running = append(running, r)
		}
	}
	add(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	add(pod.Spec.Containers, pod.Status.ContainerStatuses)
	w.a.probes.Sync(ctx, w.uid, running)
}

// result is what probes and hooks say of a container.
func (w *worker) result(id string) probe.Result {
	if w.hook(id) == hookRunning {
		return probe.Result{}
	}
	return w.a.probes.Result(id)
}

func (w *worker) backOffEvents(pod *corev1.Pod, waiting map[string]podstate.Waiting) {
	for name, wait := range waiting {
		if wait.Reason == podstate.ReasonCrashLoopBackOff {
			w.remind(pod, podspec.FindContainer(pod, name), corev1.EventTypeWarning, "BackOff",
				fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", name, pod.Name, pod.Namespace, pod.UID))
		}
	}
}

// remindPeriod is how often a state that lasts is told again in an event.
const remindPeriod = 10 * time.Second

// remind records an event about a state that lasts, unless the same was told a moment ago.
func (w *worker) remind(pod *corev1.Pod, c *corev1.Container, kind, reason, message string) {
	key := c.Name + " " + reason + " " + message
	if time.Since(w.reminded[key]) < remindPeriod {
		return
	}
	w.reminded[key] = time.Now()
	w.a.event(pod, c, kind, reason, message)
}
