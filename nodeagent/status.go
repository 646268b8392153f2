package nodeagent

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kontiki/nodeagent/podstate"
)

// statusRetryMax is how long the status of a pod waits for the next try: Services go by it, and must not send to a pod that is
// dead for long after the API server is back.
const statusRetryMax = time.Second

// statusWriter is a pod's status on its way to the API. Only the newest one matters: while the API server is away
// they do not queue up.
type statusWriter struct {
	want    *corev1.PodStatus // not written yet; nil when all is
	written *corev1.Pod       // the API server's answer to the last write
}

// newest returns the newer of what the informer and the last write have shown. Resource versions of one object can be compared
// (Kubernetes API concepts, since 1.35).
func (s *statusWriter) newest(seen *corev1.Pod) *corev1.Pod {
	if seen == nil || s.written == nil || version(s.written) < version(seen) {
		return seen
	}
	return s.written
}

func version(pod *corev1.Pod) uint64 {
	n, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64) // empty in checkpoints: older than everything
	return n
}

// report computes the pod's status and has it written if it is news. Nothing is reported of a checkpointed pod: its status
// is old, and a patch against it could say anything.
func (w *worker) report(ctx context.Context, pod *corev1.Pod, o podstate.Observation) {
	if pod.ResourceVersion == "" {
		return
	}
	status := podstate.Status(pod, o)
	w.mu.Lock()
	defer w.mu.Unlock()
	if equality.Semantic.DeepEqual(status, &pod.Status) {
		w.status.want = nil
		return
	}
	w.status.want = status
	w.tasks.start(ctx, "status", w.writeStatus)
}

// statusKnown says whether the API server has the newest status.
func (w *worker) statusKnown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status.want == nil && !w.tasks.has("status")
}

// writeStatus is the task that writes the wanted status until there is no newer one.
func (w *worker) writeStatus(ctx context.Context) {
	wait := 100 * time.Millisecond
	for ctx.Err() == nil {
		w.mu.Lock()
		if w.gone {
			w.status.want = nil // nobody is left to tell
		}
		want, base := w.status.want, w.status.newest(w.pod)
		w.mu.Unlock()
		if want == nil {
			return
		}
		got, err := w.a.patchStatus(ctx, base, want)
		switch {
		case err == nil:
			w.mu.Lock()
			w.status.written = got
			if w.status.want == want {
				w.status.want = nil
			}
			w.mu.Unlock()
			wait = 100 * time.Millisecond
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			// The object is gone, or it is another pod of the same name: the informer will say so.
			w.mu.Lock()
			w.status.want = nil
			w.mu.Unlock()
			return
		default:
			// A node may write about pods of its own. That it may not write about this one is because the pod is gone, as the
			// informer is about to say, or because that server has not heard yet that it is here: no news before it lasts.
			if !apierrors.IsForbidden(err) || wait == statusRetryMax {
				w.log.Warn("pod status could not be written", "err", err)
			}
			sleep(ctx, wait)
			wait = min(2*wait, statusRetryMax)
		}
	}
}

// patchStatus changes what differs between base's status and want, of the very pod that base is.
func (a *Agent) patchStatus(ctx context.Context, base *corev1.Pod, want *corev1.PodStatus) (*corev1.Pod, error) {
	patch, err := mergePatch(&corev1.Pod{Status: base.Status},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: base.UID}, Status: *want})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	pods := a.client.CoreV1().Pods(base.Namespace)
	return pods.Patch(ctx, base.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

// mergePatch is the strategic merge patch that turns before into after.
func mergePatch[T any](before, after *T) ([]byte, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(from, to, new(T))
}

// deleteObject has the API server remove the pod object now that nothing of the pod runs. While finalizers of others keep
// the object, it is asked again only rarely.
func (w *worker) deleteObject(ctx context.Context, pod *corev1.Pod) {
	if time.Since(w.deleted) < resyncPeriod/2 {
		return
	}
	w.deleted = time.Now()
	w.tasks.start(ctx, "delete", func(ctx context.Context) {
		wait := 100 * time.Millisecond
		for ctx.Err() == nil {
			callCtx, cancel := context.WithTimeout(ctx, apiTimeout)
			options := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID}}
			err := w.a.client.CoreV1().Pods(pod.Namespace).Delete(callCtx, pod.Name, options)
			cancel()
			if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return
			}
			if _, gone := w.wanted(); gone {
				return
			}
			if !apierrors.IsForbidden(err) || wait >= statusRetryMax { // as in writeStatus
				w.log.Warn("pod object could not be deleted", "err", err)
			}
			sleep(ctx, wait)
			wait = min(2*wait, 10*time.Second)
		}
	})
}
