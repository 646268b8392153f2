package scheduler

import (
	"container/heap"
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
)

// A pod that failed waits 100 ms, then twice as long each time, at most 10 s, even if an event wakes it before. One that no
// event has woken is tried again after a minute all the same: a safety net, should a wake-up be missing.
const (
	backoffBase  = 100 * time.Millisecond
	backoffMax   = 10 * time.Second
	parkedAtMost = time.Minute
)

// waiting is a pod without a node, in one of three places:
//
//	active   to be tried now, by priority and then by age
//	backoff  to be tried when its time has come
//	parked   fits nowhere; waits for an event that may change that (wake)
//
// or in flight: taken by pop and not handed back yet.
type waiting struct {
	pod      *corev1.Pod
	since    time.Time
	attempts int
	state    waitState
	// due is when backoff ends, and for a parked pod when it is tried without an event.
	due time.Time
	// index is the place in the active heap.
	index int
	// wakes is the number of wake-ups before this pod was taken: one that comes while it is in flight must count.
	wakes uint64
}

type waitState int

const (
	active waitState = iota
	backoff
	parked
	inFlight
)

// queue holds every unscheduled pod; it is bounded by their number.
type queue struct {
	mu     sync.Mutex // guards all below; a leaf
	pods   map[types.UID]*waiting
	active activeHeap
	// resting are the pods in backoff or parked.
	resting map[types.UID]*waiting
	wakes   uint64
	// changed has one token when pop should look again.
	changed chan struct{}
}

func newQueue() *queue {
	return &queue{pods: map[types.UID]*waiting{}, resting: map[types.UID]*waiting{}, changed: make(chan struct{}, 1)}
}

// set adds a pod, or replaces its object. A changed spec of a parked pod is a reason to try again.
func (q *queue) set(pod *corev1.Pod, worthATry bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pods[pod.UID]
	if w == nil {
		w = &waiting{pod: pod, since: time.Now()}
		q.pods[pod.UID] = w
		q.activate(w)
		return
	}
	w.pod = pod
	if worthATry && w.state == parked {
		q.activate(w)
	}
}

// remove forgets a pod: it is bound, gone, or not ours.
func (q *queue) remove(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pods[uid]
	if w == nil {
		return
	}
	if w.state == active {
		heap.Remove(&q.active, w.index)
	}
	delete(q.pods, uid)
	delete(q.resting, uid)
}

// pop waits for the next pod to try; false when ctx ends.
func (q *queue) pop(ctx context.Context) (*corev1.Pod, bool) {
	for {
		pod, wait := q.take(time.Now())
		if pod != nil {
			return pod, true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, false
		case <-q.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// take returns the next pod, or how long nothing will be due.
func (q *queue) take(now time.Time) (*corev1.Pod, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait := parkedAtMost
	for _, w := range q.resting {
		if due := w.due.Sub(now); due <= 0 {
			q.activate(w)
		} else {
			wait = min(wait, due)
		}
	}
	if q.active.Len() == 0 {
		return nil, wait
	}
	w := heap.Pop(&q.active).(*waiting)
	w.state, w.wakes = inFlight, q.wakes
	w.attempts++
	return w.pod, 0
}

// retry puts a pod back after an error that has nothing to do with the nodes: it is tried after its back-off.
func (q *queue) retry(uid types.UID) { q.putBack(uid, func(w *waiting) bool { return true }) }

// park puts a pod back that fits nowhere. If something has changed since it was taken, it is only backed off.
func (q *queue) park(uid types.UID) {
	q.putBack(uid, func(w *waiting) bool { return w.wakes != q.wakes })
}

func (q *queue) putBack(uid types.UID, soon func(*waiting) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pods[uid]
	if w == nil || w.state != inFlight {
		return
	}
	now := time.Now()
	if soon(w) {
		w.state, w.due = backoff, now.Add(backoffFor(w.attempts))
	} else {
		w.state, w.due = parked, now.Add(parkedAtMost)
	}
	w.since = now
	q.resting[uid] = w
	q.signal()
}

// wake moves parked pods to where they will be tried, because something happened that may make room.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakes++
	for _, w := range q.resting {
		if w.state == parked {
			w.state, w.due = backoff, w.since.Add(backoffFor(w.attempts))
		}
	}
	q.signal()
}

// activate and signal are called with mu held.
func (q *queue) activate(w *waiting) {
	w.state = active
	delete(q.resting, w.pod.UID)
	heap.Push(&q.active, w)
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

func backoffFor(attempts int) time.Duration {
	return min(backoffMax, backoffBase<<min(max(attempts-1, 0), 10))
}

// activeHeap orders by priority, the highest first, then by how long a pod has waited.
type activeHeap []*waiting

func (h activeHeap) Len() int { return len(h) }

func (h activeHeap) Less(i, j int) bool {
	a, b := scheduling.PodPriority(h[i].pod), scheduling.PodPriority(h[j].pod)
	if a != b {
		return a > b
	}
	return h[i].since.Before(h[j].since)
}

func (h activeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *activeHeap) Push(x any) {
	w := x.(*waiting)
	w.index = len(*h)
	*h = append(*h, w)
}

func (h *activeHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return w
}
