package nodeagent

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/nodeagent/podstate"
)

// worker runs one pod: one UID, from the moment the node hears of it until nothing of it is left. It is a state
// machine that looks rather than remembers. Each step (sync) reads the wanted pod and the runtime's actual
// state, and takes the first line of this table that applies:
//
//	wanted                                  actual              step
//	the object is gone (or never was)       anything            kill, with at most goneGrace; remove everything; end
//	phase Succeeded or Failed               anything            kill; stop the sandbox; free the volumes; wait
//	deletionTimestamp, or deadline passed   something runs      kill, as podstate.Terminate orders
//	deletionTimestamp, or deadline passed   nothing runs        final status; free; delete the object (if it is to go)
//	to run                                  anything            volumes, then what podstate.Next plans
//
// A step is idempotent and never waits for containers, images, hooks or the API server: those are tasks. A
// worker steps when it is kicked (the pod changed, a container did, a probe or a task came to an end), when a
// back-off is over, and at least once per resyncPeriod.
type worker struct {
	a     *Agent
	uid   types.UID
	log   *slog.Logger
	kicks chan struct{} // holds at most one kick: a step sees everything that came before it
	tasks *tasks

	mu     sync.Mutex // guards the fields up to the blank line; a leaf lock, never held over a call
	pod    *corev1.Pod
	gone   bool
	status statusWriter
	pulls  map[string]*pull     // by container name
	hooks  map[string]hookState // by container id

	// Of the worker's own goroutine.
	end       deadline             // of a termination
	kills     map[string]time.Time // container id to the deadline that its kill task has
	mounted   time.Time            // when volumes were last made or refreshed
	volumes   map[string]string
	reminded  map[string]time.Time // see remind
	errorWait time.Duration        // grows while steps fail
	deleted   time.Time            // when the API server was last asked to delete the object
}

const (
	resyncPeriod  = time.Minute
	volumeRefresh = 45 * time.Second // ND-10 wants changes visible within 90 s
	goneGrace     = 2 * time.Second
	maxErrorWait  = 20 * time.Second
)

func newWorker(a *Agent, uid types.UID) *worker {
	w := &worker{a: a, uid: uid, log: a.log.With("podUID", uid), kicks: make(chan struct{}, 1),
		pulls: map[string]*pull{}, hooks: map[string]hookState{}, kills: map[string]time.Time{}, reminded: map[string]time.Time{}}
	w.tasks = &tasks{kick: w.kick, running: map[string]context.CancelFunc{}}
	return w
}

// kick asks for a step. It never blocks.
func (w *worker) kick() {
	select {
	case w.kicks <- struct{}{}:
	default:
	}
}

// update gives the worker a new version of its pod.
func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	w.kick()
}

// objectGone tells the worker that the API no longer has its pod.
func (w *worker) objectGone() {
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.kick()
}

// wanted returns the newest known version of the pod, nil if none was ever seen, and whether the object is gone.
func (w *worker) wanted() (*corev1.Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status.newest(w.pod), w.gone || w.pod == nil
}

// run steps until nothing of the pod is left, or until ctx ends; then all containers keep running.
func (w *worker) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer w.tasks.wait()
	defer cancel()
	for ctx.Err() == nil {
		wake, done := w.step(ctx)
		if done {
			return
		}
		timer := time.NewTimer(max(time.Until(wake), time.Millisecond))
		select {
		case <-w.kicks:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// step is one sync. It returns when to step again at the latest, and whether the worker is done.
func (w *worker) step(ctx context.Context) (wake time.Time, done bool) {
	wake, done, err := w.sync(ctx)
	if err != nil && ctx.Err() == nil {
		w.errorWait = min(max(2*w.errorWait, time.Second/2), maxErrorWait)
		w.log.Warn("pod step failed", "err", err, "retryIn", w.errorWait)
		return time.Now().Add(w.errorWait), false
	}
	w.errorWait = 0
	if latest := time.Now().Add(resyncPeriod); wake.IsZero() || wake.After(latest) {
		wake = latest
	}
	return wake, done
}

func (w *worker) sync(ctx context.Context) (wake time.Time, done bool, err error) {
	pod, gone := w.wanted()
	state, err := w.a.cri.podState(ctx, w.uid)
	if err != nil {
		return wake, false, err
	}
	w.forget(state)
	if gone {
		done, err := w.remove(ctx, pod, state)
		return wake, done, err
	}
	switch why := w.terminates(pod); {
	case finished(pod):
		err = w.rest(ctx, pod, state)
	case why != nil:
		err = w.terminate(ctx, pod, state, why)
	default:
		wake, err = w.runPod(ctx, pod, state)
	}
	return wake, false, err
}

// forget drops what was remembered of containers that are no more, and reminders that have had their effect.
func (w *worker) forget(state *podstate.State) {
	there := map[string]bool{}
	for _, list := range state.Containers {
		for _, in := range list {
			there[in.Id] = true
		}
	}
	w.mu.Lock()
	maps.DeleteFunc(w.hooks, func(id string, s hookState) bool { return !there[id] && s != hookRunning })
	w.mu.Unlock()
	maps.DeleteFunc(w.kills, func(id string, _ time.Time) bool { return !there[id] })
	maps.DeleteFunc(w.reminded, func(_ string, at time.Time) bool { return time.Since(at) > remindPeriod })
}

func finished(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

// observation is the part of a status that all steps share.
func (w *worker) observation(state *podstate.State) podstate.Observation {
	return podstate.Observation{State: state, Probes: w.result, HostIPs: w.a.hostIPs(),
		RuntimeName: w.a.cri.name, Now: time.Now()}
}
