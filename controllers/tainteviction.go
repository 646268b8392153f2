package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// taintEviction deletes pods from nodes with NoExecute taints that they do not tolerate, or no longer: tolerationSeconds
// count from the taint's timeAdded. A request names a pod.
type taintEviction struct {
	client   kubernetes.Interface
	nodes    corelisters.NodeLister
	pods     corelisters.PodLister
	recorder record.EventRecorder
	now      func() time.Time
}

func addTaintEviction(m *manager) error {
	client, err := m.client("taint-eviction")
	if err != nil {
		return err
	}
	core := m.shared.Core().V1()
	t := &taintEviction{client: client, nodes: core.Nodes().Lister(), pods: core.Pods().Lister(), recorder: m.recorder("taint-eviction"), now: time.Now}
	c := m.add("taint-eviction", 4, t)
	watchUpdates(c, core.Pods().Informer(), requestFor[*corev1.Pod], func(before, after *corev1.Pod) bool {
		return before.Spec.NodeName != after.Spec.NodeName || !equality.Semantic.DeepEqual(before.Spec.Tolerations, after.Spec.Tolerations)
	})
	byNodeIndex := core.Pods().Informer().GetIndexer()
	watchUpdates(c, core.Nodes().Informer(), func(node *corev1.Node) []Request { return requestsForPodsOn(byNodeIndex, node.Name) },
		func(before, after *corev1.Node) bool {
			return !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
		})
	return nil
}

func requestsForPodsOn(pods cache.Indexer, node string) (requests []Request) {
	on, err := indexed[*corev1.Pod](pods, byNode, node)
	if err != nil {
		return nil // the index exists: addNodeLifecycle made it
	}
	for _, pod := range on {
		requests = append(requests, requestFor(pod)...)
	}
	return requests
}

func (t *taintEviction) Reconcile(ctx context.Context, req Request) (Result, error) {
	pod, err := t.pods.Pods(req.Namespace).Get(req.Name)
	if apierrors.IsNotFound(err) || err == nil && (pod.Spec.NodeName == "" || !podActive(pod)) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	node, err := t.nodes.Get(pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return Result{}, nil // podGC's
	}
	if err != nil {
		return Result{}, err
	}
	due, must := evictionTime(node.Spec.Taints, pod.Spec.Tolerations)
	if !must {
		return Result{}, nil
	}
	if wait := due.Sub(t.now()); wait > 0 {
		return Result{RequeueAfter: wait}, nil
	}
	return Result{}, t.evict(ctx, pod)
}

// evictionTime is when the first NoExecute taint is no longer tolerated; the zero time if one never was.
func evictionTime(taints []corev1.Taint, tolerations []corev1.Toleration) (due time.Time, must bool) {
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		seconds, bounded, tolerated := toleratedFor(taint, tolerations)
		if !tolerated {
			return time.Time{}, true
		}
		if !bounded {
			continue
		}
		var end time.Time
		if taint.TimeAdded != nil {
			end = taint.TimeAdded.Add(time.Duration(seconds) * time.Second)
		}
		if !must || end.Before(due) {
			due, must = end, true
		}
	}
	return due, must
}

// toleratedFor is the shortest bound among the tolerations that match; negative seconds count as zero.
func toleratedFor(taint *corev1.Taint, tolerations []corev1.Toleration) (seconds int64, bounded, tolerated bool) {
	for i := range tolerations {
		if !tolerations[i].ToleratesTaint(klog.Background(), taint, false) {
			continue
		}
		tolerated = true
		if s := tolerations[i].TolerationSeconds; s != nil && (!bounded || *s < seconds) {
			seconds, bounded = max(*s, 0), true
		}
	}
	return seconds, bounded, tolerated
}

// evict says why before it deletes, so that whoever owns the pod can tell this from a failure.
func (t *taintEviction) evict(ctx context.Context, pod *corev1.Pod) error {
	t.recorder.Eventf(pod, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s/%s", pod.Namespace, pod.Name)
	err := patchPodCondition(ctx, t.client, pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
		Message: "Taint manager: deleting due to NoExecute taint", LastTransitionTime: metav1.NewTime(t.now().Truncate(time.Second)),
	}, "")
	if err != nil {
		return err
	}
	return deletePod(ctx, t.client, pod, nil)
}
