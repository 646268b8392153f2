package nodeagent

import (
	"context"
	"encoding/json"
	"maps"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The rhythm of a node: it looks at itself every few seconds, renews its Lease as a sign of life, and writes its
// status when it has changed, or when it has not for a while (Kubernetes: node status report frequency).
const (
	nodePeriod   = 5 * time.Second
	statusPeriod = 5 * time.Minute
)

// nodeReporter registers this machine as a Node and keeps the object true. All of it runs in one
// goroutine.
type nodeReporter struct {
	a        *Agent
	node     *corev1.Node // the API server's newest answer; nil until registered
	wrote    time.Time
	leased   time.Time
	podCIDR  string // what the runtime was told: one, or two with a comma between
	failures int
}

func newNodeReporter(a *Agent) *nodeReporter { return &nodeReporter{a: a} }

// run reports until ctx ends. While the API server is away it tries again, at first quickly.
func (n *nodeReporter) run(ctx context.Context) {
	if n.a.cfg.PodCIDR != "" {
		n.tellRuntime(ctx, n.a.cfg.PodCIDR)
	}
	for ctx.Err() == nil {
		wait := nodePeriod
		if err := n.report(ctx); err != nil && ctx.Err() == nil {
			n.failures++
			n.a.log.Warn("node could not be reported", "err", err)
			wait = min(200*time.Millisecond<<min(n.failures, 5), nodePeriod)
		} else {
			n.failures = 0
		}
		if n.podCIDR == "" && n.node != nil && wait == nodePeriod {
			wait = time.Second // controllers are about to choose one
		}
		sleep(ctx, wait)
	}
}

func (n *nodeReporter) report(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	if n.node == nil {
		if err := n.register(ctx); err != nil {
			return err
		}
	}
	if err := n.renewLease(ctx); err != nil {
		return err
	}
	got, err := n.a.client.CoreV1().Nodes().Get(ctx, n.a.cfg.NodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		n.node = nil // somebody deleted the Node: it comes back
		return n.register(ctx)
	}
	if err != nil {
		return err
	}
	n.node = got
	if cidr := strings.Join(n.node.Spec.PodCIDRs, ","); cidr != "" && cidr != n.podCIDR {
		n.tellRuntime(ctx, cidr)
	}
	return n.writeStatus(ctx)
}

// register creates the Node, or takes over the one that is there.
func (n *nodeReporter) register(ctx context.Context) error {
	labels := n.labels()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.a.cfg.NodeName, Labels: labels}}
	node.Spec.Taints = n.a.cfg.Taints
	node.Status = n.status(ctx, node)
	created, err := n.a.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err == nil {
		n.node = created
		n.a.log.Info("node registered", "node", node.Name)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	changes := map[string]any{}
	for _, name := range n.a.cfg.NoLabels {
		changes[name] = nil // takes it off
	}
	for name, value := range labels {
		changes[name] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": changes}})
	if err != nil {
		return err
	}
	patched, err := n.a.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err // and patched is an empty Node, not nil
	}
	n.node = patched
	return nil
}

func (n *nodeReporter) labels() map[string]string {
	l := map[string]string{
		corev1.LabelHostname: n.a.cfg.NodeName, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(l, n.a.cfg.Labels)
	return l
}

func (n *nodeReporter) tellRuntime(ctx context.Context, cidr string) {
	_, err := n.a.cri.UpdateRuntimeConfig(ctx, &runtimeapi.UpdateRuntimeConfigRequest{RuntimeConfig: &runtimeapi.RuntimeConfig{
		NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: cidr}}})
	if err != nil {
		n.a.log.Warn("runtime did not take the pod CIDR", "podCIDR", cidr, "err", err)
		return
	}
	n.podCIDR = cidr
}

// writeStatus patches the status if it says something new, or has not been written for long.
func (n *nodeReporter) writeStatus(ctx context.Context) error {
	want := n.status(ctx, n.node)
	if time.Since(n.wrote) < statusPeriod && equality.Semantic.DeepEqual(withoutHeartbeats(want), withoutHeartbeats(n.node.Status)) {
		return nil
	}
	patch, err := mergePatch(&corev1.Node{Status: n.node.Status}, &corev1.Node{Status: want})
	if err != nil {
		return err
	}
	nodes := n.a.client.CoreV1().Nodes()
	got, err := nodes.Patch(ctx, n.node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	n.node, n.wrote = got, time.Now()
	return nil
}

func withoutHeartbeats(s corev1.NodeStatus) corev1.NodeStatus {
	s = *s.DeepCopy()
	for i := range s.Conditions {
		s.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	return s
}
