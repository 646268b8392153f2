package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientcache "k8s.io/client-go/tools/cache"

	"kontiki/internal/apiclient"
)

// handlers feed cache and queue from the informers, and wake parked pods by what may make room for them: a node that is new
// or changed in what filters look at, a pod that is gone or has ended, a pod whose labels affinity may ask for.
func (s *scheduler) handlers(core coreinformers.Interface) ([]clientcache.InformerSynced, error) {
	pods, err := core.Pods().Informer().AddEventHandler(clientcache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.podSeen(nil, obj.(*corev1.Pod)) },
		UpdateFunc: func(before, after any) { s.podSeen(before.(*corev1.Pod), after.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if pod, ok := apiclient.LastKnown[*corev1.Pod](obj); ok {
				s.podGone(pod)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	nodes, err := core.Nodes().Informer().AddEventHandler(clientcache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.nodeSeen(nil, obj.(*corev1.Node)) },
		UpdateFunc: func(before, after any) { s.nodeSeen(before.(*corev1.Node), after.(*corev1.Node)) },
		DeleteFunc: func(obj any) {
			if node, ok := apiclient.LastKnown[*corev1.Node](obj); ok {
				s.cache.removeNode(node.Name)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return []clientcache.InformerSynced{pods.HasSynced, nodes.HasSynced}, nil
}

func (s *scheduler) podSeen(before, pod *corev1.Pod) {
	if before != nil && before.UID != pod.UID { // deleted and made anew while the watch was down
		s.podGone(before)
		before = nil
	}
	switch {
	case pod.Spec.NodeName != "":
		s.queue.remove(pod.UID)
		s.assigned(before, pod)
	case pod.Spec.SchedulerName != Name, pod.DeletionTimestamp != nil, ended(pod), len(pod.Spec.SchedulingGates) > 0:
		s.queue.remove(pod.UID)
	default:
		s.queue.set(pod, before == nil || before.Generation != pod.Generation || !equality.Semantic.DeepEqual(before.Labels, pod.Labels))
	}
}

func (s *scheduler) assigned(before, pod *corev1.Pod) {
	if ended(pod) {
		if s.cache.removePod(pod.UID) {
			s.queue.wake()
		}
		return
	}
	s.cache.setPod(pod, pod.Spec.NodeName)
	isNew := before == nil || before.Spec.NodeName == ""
	if isNew || before.Generation != pod.Generation || !equality.Semantic.DeepEqual(before.Labels, pod.Labels) {
		s.queue.wake() // somebody may have an affinity to it, or it was resized
	}
}

func (s *scheduler) podGone(pod *corev1.Pod) {
	s.queue.remove(pod.UID)
	if s.cache.removePod(pod.UID) {
		s.queue.wake()
	}
}

func (s *scheduler) nodeSeen(before, node *corev1.Node) {
	s.cache.setNode(node)
	if before == nil || nodeChanged(before, node) {
		s.queue.wake()
	}
}

// nodeChanged looks at what filters look at: a heartbeat is no reason to try every pod again.
func nodeChanged(a, b *corev1.Node) bool {
	return a.Spec.Unschedulable != b.Spec.Unschedulable || !equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints) ||
		!equality.Semantic.DeepEqual(a.Labels, b.Labels) || !equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable)
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// waitAll waits until the handlers have seen the first listing.
func waitAll(ctx context.Context, synced []clientcache.InformerSynced) bool {
	return clientcache.WaitForCacheSync(ctx.Done(), synced...)
}
