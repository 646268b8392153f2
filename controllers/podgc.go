package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"
)

const (
	podGCPeriod = 20 * time.Second
	// orphanQuarantine is how long a node must be missing before its pods are removed: a node that registers anew under the
	// same name keeps them.
	orphanQuarantine = 40 * time.Second
	// terminatedPodThreshold is how many ended pods the cluster keeps for people to look at; the oldest go first.
	terminatedPodThreshold = 12500
)

// podGC removes pods that nobody else will: those bound to nodes that no longer exist, those that were deleted before they
// got a node, and the oldest of very many ended ones. It has a single request, served periodically.
type podGC struct {
	client kubernetes.Interface
	nodes  corelisters.NodeLister
	pods   corelisters.PodLister
	now    func() time.Time
	// missing is since when a node was not found. Only one worker runs, so nothing guards it.
	missing map[string]time.Time
}

func addPodGC(m *manager) error {
	client, err := m.client("pod-garbage-collector")
	if err != nil {
		return err
	}
	core := m.shared.Core().V1()
	core.Nodes().Informer()
	core.Pods().Informer()
	c := m.add("pod-garbage-collector", 1, &podGC{
		client: client, nodes: core.Nodes().Lister(), pods: core.Pods().Lister(), now: time.Now, missing: map[string]time.Time{},
	})
	c.enqueue(named("all pods"))
	return nil
}

func (g *podGC) Reconcile(ctx context.Context, _ Request) (Result, error) {
	pods, err := g.pods.List(labels.Everything())
	if err != nil {
		return Result{}, err
	}
	lost, err := g.lostNodes(ctx, pods)
	if err != nil {
		return Result{}, err
	}
	var errs []error
	for _, pod := range pods {
		switch {
		case lost[pod.Spec.NodeName]:
			errs = append(errs, g.remove(ctx, pod, "PodGC: node no longer exists"))
		case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil:
			errs = append(errs, g.remove(ctx, pod, "PodGC: deleted before it was scheduled"))
		}
	}
	for _, pod := range surplusTerminated(pods, terminatedPodThreshold) {
		errs = append(errs, deletePod(ctx, g.client, pod, ptr.To(int64(0))))
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	return Result{RequeueAfter: podGCPeriod}, nil
}

// lostNodes are the names that pods are bound to and that no node has had for the quarantine. The API server has the last
// word: the cache might be behind.
func (g *podGC) lostNodes(ctx context.Context, pods []*corev1.Pod) (map[string]bool, error) {
	absent := map[string]bool{}
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if name == "" || absent[name] {
			continue
		}
		if _, err := g.nodes.Get(name); apierrors.IsNotFound(err) {
			absent[name] = true
		}
	}
	for name := range g.missing {
		if !absent[name] {
			delete(g.missing, name)
		}
	}
	lost := map[string]bool{}
	for name := range absent {
		since, known := g.missing[name]
		if !known {
			g.missing[name] = g.now()
			continue
		}
		if g.now().Sub(since) < orphanQuarantine {
			continue
		}
		_, err := g.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		lost[name] = err != nil
	}
	return lost, nil
}

// remove ends a pod that no node will end: it is marked Failed, unless it had ended, and deleted without grace.
func (g *podGC) remove(ctx context.Context, pod *corev1.Pod, why string) error {
	if !podTerminal(pod) {
		err := patchPodCondition(ctx, g.client, pod, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: why,
			LastTransitionTime: metav1.NewTime(g.now().Truncate(time.Second)),
		}, corev1.PodFailed)
		if err != nil {
			return err
		}
	}
	return deletePod(ctx, g.client, pod, ptr.To(int64(0)))
}

// surplusTerminated are the oldest of the ended pods beyond the threshold.
func surplusTerminated(pods []*corev1.Pod, threshold int) []*corev1.Pod {
	ended := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !podTerminal(pod) })
	slices.SortFunc(ended, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return ended[:max(0, len(ended)-threshold)]
}
