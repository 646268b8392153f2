package nodeagent

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/apiclient"
)

// podWorkers has one worker per pod that this node runs, is to run, or still has something of.
type podWorkers struct {
	a   *Agent
	ctx context.Context // of Run; the workers' parent
	wg  sync.WaitGroup

	mu      sync.Mutex // guards workers and restored; taken before a worker's mu
	workers map[types.UID]*worker
	// restored are the pods known from checkpoints alone; nil once the API has been listed, from when on pods
	// without an object are strangers.
	restored map[types.UID]bool
}

func newPodWorkers(ctx context.Context, a *Agent) *podWorkers {
	return &podWorkers{a: a, ctx: ctx, workers: map[types.UID]*worker{}, restored: map[types.UID]bool{}}
}

// informer watches the pods that are bound to this node. delivered reports that every pod of the first list has been handed
// to its worker, which is later than the informer's own HasSynced: whoever looks for pods without an object must wait for it.
func (p *podWorkers) informer() (inf cache.SharedIndexInformer, delivered cache.InformerSynced, err error) {
	lw := cache.NewListWatchFromClient(p.a.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", p.a.cfg.NodeName))
	inf = cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := inf.SetTransform(apiclient.DropManagedFields); err != nil {
		return nil, nil, err
	}
	handler, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { p.update(obj.(*corev1.Pod)) },
		UpdateFunc: func(old, obj any) {
			if before := old.(*corev1.Pod); before.UID != obj.(*corev1.Pod).UID {
				p.gone(before.UID) // deleted and made anew while the watch was interrupted
			}
			p.update(obj.(*corev1.Pod))
		},
		DeleteFunc: func(obj any) {
			if pod, ok := apiclient.LastKnown[*corev1.Pod](obj); ok {
				p.gone(pod.UID)
			}
		},
	})
	if err != nil {
		return nil, nil, err
	}
	return inf, handler.HasSynced, nil
}

// update hands a pod to its worker, and starts one if there is none.
func (p *podWorkers) update(pod *corev1.Pod) {
	w, isNew := p.worker(pod.UID, pod)
	if old, _ := w.wanted(); isNew || old == nil || old.ResourceVersion == "" || old.Generation != pod.Generation ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) || old.Status.Phase != pod.Status.Phase {
		p.a.checkpoints.save(pod)
	}
	w.update(pod)
}

// gone tells a worker that its object is gone.
func (p *podWorkers) gone(uid types.UID) {
	p.mu.Lock()
	w := p.workers[uid]
	p.mu.Unlock()
	if w != nil {
		w.objectGone()
	}
}

// worker returns the worker of a pod. A new one begins with the given object, nil for a stranger.
func (p *podWorkers) worker(uid types.UID, pod *corev1.Pod) (w *worker, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w = p.workers[uid]; w != nil {
		return w, false
	}
	w = newWorker(p.a, uid)
	w.pod = pod
	if p.ctx.Err() != nil {
		return w, true // the agent is stopping: nobody will run it
	}
	p.workers[uid] = w
	p.wg.Go(func() {
		w.run(p.ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.workers, uid)
	})
	return w, true
}

// restore starts the workers of checkpointed pods.
func (p *podWorkers) restore() {
	for _, pod := range p.a.checkpoints.load() {
		p.mu.Lock()
		p.restored[pod.UID] = true
		p.mu.Unlock()
		p.worker(pod.UID, pod)
	}
}

// listed is called with the API's first list: checkpointed pods that are not in it are gone.
func (p *podWorkers) listed(pods []any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, obj := range pods {
		delete(p.restored, obj.(*corev1.Pod).UID)
	}
	for uid := range p.restored {
		if w := p.workers[uid]; w != nil {
			w.objectGone()
		}
	}
	p.restored = nil
}

// adopt starts workers for strangers: pods that something is left of and that have no object (ND-07).
func (p *podWorkers) adopt(uids []types.UID) {
	if !p.complete() {
		return
	}
	for _, uid := range uids {
		p.worker(uid, nil)
	}
}

// complete says whether the API has been listed: before, a pod without an object may be one that is yet to be told of.
func (p *podWorkers) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restored == nil
}

// kick asks for a step of the pod, if it has a worker.
func (p *podWorkers) kick(uid types.UID) {
	p.mu.Lock()
	w := p.workers[uid]
	p.mu.Unlock()
	if w != nil {
		w.kick()
	}
}

// known lists the pods that have a worker, with the newest object of each.
func (p *podWorkers) known() map[types.UID]*corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[types.UID]*corev1.Pod, len(p.workers))
	for uid, w := range p.workers {
		pod, _ := w.wanted()
		out[uid] = pod
	}
	return out
}
