package controllers

import (
	"cmp"
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	nodeutil "k8s.io/component-helpers/node/util"
)

const (
	// nodeGrace is Config.NodeGrace where that says nothing.
	nodeGrace = 40 * time.Second
	// nodeStartupGrace is how long a new node may take to report for the first time.
	nodeStartupGrace = 60 * time.Second
)

// nodeLifecycle watches over nodes. A node that has stopped renewing its Lease gets Ready=Unknown; conditions and cordons
// become taints, which the scheduler and taintEviction act on; pods of a node that is not ready are marked not ready, so
// that Services leave them out.
//
// A heartbeat is dated by when this process saw it change, not by the time written in it: clocks of nodes may be wrong, and
// after a restart every node has a full grace period again.
type nodeLifecycle struct {
	client   kubernetes.Interface
	nodes    corelisters.NodeLister
	leases   coordinationlisters.LeaseNamespaceLister
	pods     cache.Indexer
	recorder record.EventRecorder
	grace    time.Duration // how long a node may be silent
	now      func() time.Time

	mu         sync.Mutex // guards heartbeats
	heartbeats map[string]heartbeat
}

// heartbeat is the last sign of life of a node and when it was seen.
type heartbeat struct {
	renewed, reported time.Time // as written by the node, in its Lease and in its status
	seen              time.Time
}

// byNode is an informer index from node names to pods.
const byNode = "node"

func indexByNode(pods cache.SharedIndexInformer) error {
	return pods.AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}, nil
		}
		return nil, nil
	}})
}

func addNodeLifecycle(m *manager) error {
	client, err := m.client("node-lifecycle")
	if err != nil {
		return err
	}
	core, leases := m.shared.Core().V1(), m.nodeLeases.Coordination().V1().Leases()
	if err := indexByNode(core.Pods().Informer()); err != nil {
		return err
	}
	n := &nodeLifecycle{
		client: client, nodes: core.Nodes().Lister(), leases: leases.Lister().Leases(corev1.NamespaceNodeLease),
		pods: core.Pods().Informer().GetIndexer(), recorder: m.recorder("node-lifecycle"),
		grace: cmp.Or(m.config.NodeGrace, nodeGrace), now: time.Now, heartbeats: map[string]heartbeat{},
	}
	c := m.add("node-lifecycle", 4, n)
	watch(c, core.Nodes().Informer(), requestFor[*corev1.Node])
	watch(c, leases.Informer(), func(lease *coordinationv1.Lease) []Request { return []Request{named(lease.Name)} })
	return nil
}

func (n *nodeLifecycle) Reconcile(ctx context.Context, req Request) (Result, error) {
	node, err := n.nodes.Get(req.Name)
	if apierrors.IsNotFound(err) {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.heartbeats, req.Name)
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	left, reported := n.graceLeft(node)
	if left <= 0 {
		if node, err = n.markLost(ctx, node, reported); err != nil {
			return Result{}, err
		}
	}
	if err := n.syncTaints(ctx, node); err != nil {
		return Result{}, err
	}
	if _, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady); ready != nil && ready.Status != corev1.ConditionTrue {
		if err := n.markPodsNotReady(ctx, node); err != nil {
			return Result{}, err
		}
	}
	return Result{RequeueAfter: max(left, 0)}, nil // a lost node comes back by its own event
}

// graceLeft notes a new heartbeat and says how long the node may stay silent from now, and whether it ever reported.
func (n *nodeLifecycle) graceLeft(node *corev1.Node) (left time.Duration, reported bool) {
	var now heartbeat
	if lease, err := n.leases.Get(node.Name); err == nil && lease.Spec.RenewTime != nil {
		now.renewed = lease.Spec.RenewTime.Time
	}
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	if ready != nil {
		now.reported = ready.LastHeartbeatTime.Time
	}
	now.seen = n.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	last, known := n.heartbeats[node.Name]
	if !known || !last.renewed.Equal(now.renewed) || last.reported.Before(now.reported) {
		n.heartbeats[node.Name], last = now, now
	}
	grace := n.grace
	if ready == nil {
		grace = nodeStartupGrace
	}
	return last.seen.Add(grace).Sub(now.seen), ready != nil
}

// lostConditions are those that only the node itself can know.
var lostConditions = []corev1.NodeConditionType{
	corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
}

func (n *nodeLifecycle) markLost(ctx context.Context, node *corev1.Node, reported bool) (*corev1.Node, error) {
	reason, message := "NodeStatusUnknown", "Kubelet stopped posting node status."
	if !reported {
		reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
	}
	update, now := node.DeepCopy(), metav1.NewTime(n.now().Truncate(time.Second))
	for _, kind := range lostConditions {
		_, current := nodeutil.GetNodeCondition(&update.Status, kind)
		switch {
		case current == nil:
			update.Status.Conditions = append(update.Status.Conditions, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, Reason: reason, Message: message, LastTransitionTime: now,
			})
		case current.Status != corev1.ConditionUnknown: // lastHeartbeatTime stays: it was the node's
			current.Status, current.Reason, current.Message, current.LastTransitionTime = corev1.ConditionUnknown, reason, message, now
		}
	}
	if equality.Semantic.DeepEqual(node.Status, update.Status) {
		return node, nil
	}
	n.recorder.Eventf(node, corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: NodeNotReady", node.Name)
	return n.client.CoreV1().Nodes().UpdateStatus(ctx, update, metav1.UpdateOptions{})
}

// markPodsNotReady speaks for a node that cannot: what it runs may be gone.
func (n *nodeLifecycle) markPodsNotReady(ctx context.Context, node *corev1.Node) error {
	pods, err := indexed[*corev1.Pod](n.pods, byNode, node.Name)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		ready := podCondition(pod, corev1.PodReady)
		if ready == nil || ready.Status != corev1.ConditionTrue {
			continue
		}
		err := patchPodCondition(ctx, n.client, pod, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady", LastTransitionTime: metav1.NewTime(n.now().Truncate(time.Second)),
		}, "")
		if err != nil {
			return err
		}
		n.recorder.Event(pod, corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
	}
	return nil
}
