package nodeagent

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/podstate"
)

// ending says why a pod is ended by the agent. reason and message are empty for a deletion.
type ending struct {
	graceSeconds    int64
	reason, message string
}

// terminates says whether the pod shall end, and how.
func (w *worker) terminates(pod *corev1.Pod) *ending {
	if pod.DeletionTimestamp != nil {
		grace := specGrace(pod)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = *pod.DeletionGracePeriodSeconds
		}
		return &ending{graceSeconds: grace}
	}
	if over := activeDeadline(pod); over.IsZero() || time.Now().Before(over) {
		return nil
	}
	return &ending{graceSeconds: specGrace(pod), reason: "DeadlineExceeded",
		message: "Pod was active on the node longer than the specified deadline"}
}

// activeDeadline is when the pod's activeDeadlineSeconds are over; zero is never.
func activeDeadline(pod *corev1.Pod) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}

func specGrace(pod *corev1.Pod) int64 {
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// deadline is the one end of a termination: the grace period is a total, for hooks, main containers and sidecars
// together (ND-04). A later request can only bring it forward.
type deadline struct {
	at    time.Time
	grace int64
}

func (d *deadline) set(now time.Time, graceSeconds int64) time.Time {
	if d.at.IsZero() || graceSeconds < d.grace {
		end := now.Add(time.Duration(graceSeconds) * time.Second)
		if d.at.IsZero() || end.Before(d.at) {
			d.at = end
		}
		d.grace = graceSeconds
	}
	return d.at
}

// terminate stops the containers and, when none runs any more, frees what the pod held and has its object deleted.
func (w *worker) terminate(ctx context.Context, pod *corev1.Pod, state *podstate.State, why *ending) error {
	w.syncProbes(ctx, pod, state)
	plan := podstate.Terminate(pod, state)
	w.killAll(ctx, pod, plan, why.graceSeconds)
	o := w.observation(state)
	o.Terminal, o.Reason, o.Message = plan.Finished, why.reason, why.message
	if why.reason != "" && !plan.Finished {
		o.Reason = "" // it has failed when it has ended
	}
	w.report(ctx, pod, o)
	if !plan.Finished {
		return nil
	}
	if err := w.free(ctx, pod, state); err != nil {
		return err
	}
	if pod.DeletionTimestamp != nil && w.statusKnown() {
		w.deleteObject(ctx, pod)
	}
	return nil
}

func (w *worker) killAll(ctx context.Context, pod *corev1.Pod, plan *podstate.Plan, graceSeconds int64) {
	end := w.end.set(time.Now(), graceSeconds)
	for _, k := range plan.Kill {
		w.kill(ctx, pod, k, end)
	}
}

// rest keeps a finished pod finished. Its containers stay for their logs, everything else is freed.
func (w *worker) rest(ctx context.Context, pod *corev1.Pod, state *podstate.State) error {
	plan := podstate.Terminate(pod, state)
	w.killAll(ctx, pod, plan, specGrace(pod))
	w.a.probes.Sync(ctx, w.uid, nil)
	if !plan.Finished {
		return nil
	}
	o := w.observation(state)
	o.Terminal = true
	w.report(ctx, pod, o)
	return w.free(ctx, pod, state)
}

// free gives back the network and the volumes of a pod in which nothing runs. What its containers said when they ended stays as
// long as they do: it is read again for each status.
func (w *worker) free(ctx context.Context, pod *corev1.Pod, state *podstate.State) error {
	for _, s := range state.Sandboxes {
		if s.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			if err := w.stopSandbox(ctx, s.Id); err != nil {
				return err
			}
		}
	}
	w.volumes = nil
	if err := w.a.volumes.Free(w.uid); err != nil {
		w.a.event(pod, nil, corev1.EventTypeWarning, "FailedUnMount", err.Error())
		return err
	}
	return nil
}

func (w *worker) stopSandbox(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, sandboxTimeout)
	defer cancel()
	if _, err := w.a.cri.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("stop sandbox: %w", err)
	}
	return nil
}

// remove ends and removes everything of a pod whose object is gone. pod is nil if it was never seen: the
// containers were found in the runtime and belong to nobody (ND-07).
func (w *worker) remove(ctx context.Context, pod *corev1.Pod, state *podstate.State) (done bool, err error) {
	w.a.probes.Sync(ctx, w.uid, nil)
	if pod == nil {
		pod = strangerPod(state)
	}
	plan := podstate.Terminate(pod, state)
	end := time.Now().Add(min(goneGrace, time.Duration(orphanGrace(state))*time.Second))
	if !w.end.at.IsZero() && w.end.at.Before(end) {
		end = w.end.at
	}
	w.end.at = end
	for _, k := range plan.Kill {
		w.kill(ctx, pod, k, end)
	}
	if !plan.Finished {
		return false, nil
	}
	for _, s := range state.Sandboxes {
		if err := w.stopSandbox(ctx, s.Id); err != nil {
			return false, err
		}
		if _, err := w.a.cri.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id}); err != nil {
			return false, fmt.Errorf("remove sandbox: %w", err)
		}
	}
	for _, list := range state.Containers { // of sandboxes that the runtime had forgotten
		for _, in := range list {
			if _, err := w.a.cri.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: in.Id}); err != nil {
				return false, fmt.Errorf("remove container: %w", err)
			}
		}
	}
	if err := w.a.volumes.Remove(w.uid); err != nil {
		return false, err
	}
	w.unprotect()
	w.a.certificates.forget(w.uid)
	w.a.checkpoints.remove(w.uid)
	if pod.Name != "" {
		err = os.RemoveAll(w.a.logDir(pod))
	}
	return err == nil, err
}

// strangerPod is as much of a pod as its sandboxes and containers tell.
func strangerPod(state *podstate.State) *corev1.Pod {
	pod := &corev1.Pod{}
	for _, s := range state.Sandboxes {
		m := s.GetMetadata()
		pod.Name, pod.Namespace, pod.UID = m.GetName(), m.GetNamespace(), types.UID(m.GetUid())
	}
	return pod
}

// orphanGrace is the longest grace period, in seconds, that the containers were created with.
func orphanGrace(state *podstate.State) int64 {
	longest := int64(0)
	for _, list := range state.Containers {
		for _, in := range list {
			n, err := strconv.ParseInt(in.Annotations[podspec.AnnotationGracePeriod], 10, 64)
			if err != nil {
				n = corev1.DefaultTerminationGracePeriodSeconds
			}
			longest = max(longest, n)
		}
	}
	return longest
}
