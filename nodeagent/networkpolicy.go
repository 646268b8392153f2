package nodeagent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/nftables"
	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/podstate"
	"kontiki/nodeagent/policy"
)

// openPolicies prepares NetworkPolicies for the pods of the informer, nil where they are not enforced.
func (a *Agent) openPolicies(factory informers.SharedInformerFactory, pods cache.SharedIndexInformer) *policy.Enforcer {
	if a.cfg.ClusterNetwork.NoPolicies {
		a.removePolicies()
		return nil
	}
	enforcer, err := policy.New(policy.Config{
		Pods: pods, Informers: factory, Running: a.runningAddresses, Report: a.reportPolicies, Log: a.cfg.Log,
	})
	if err != nil {
		a.log.Warn("NetworkPolicies are not enforced on this node", "err", err)
		return nil
	}
	return enforcer
}

// policiesUnavailable is a condition of Nodes that Kubernetes does not have: NetworkPolicies cannot be enforced there. A Node
// where that has never been so has none.
const policiesUnavailable corev1.NodeConditionType = "NetworkPolicyUnavailable"

// reportPolicies tells of trouble with NetworkPolicies, nil when it is over, in an event; the Node's condition follows.
func (a *Agent) reportPolicies(err error) {
	node := &corev1.ObjectReference{Kind: "Node", Name: a.cfg.NodeName, UID: types.UID(a.cfg.NodeName)}
	if err == nil {
		a.policyTrouble.Store(nil)
		a.recorder.Event(node, corev1.EventTypeNormal, "NetworkPolicyEnforced", "NetworkPolicies are enforced")
		return
	}
	a.policyTrouble.Store(&err)
	a.recorder.Event(node, corev1.EventTypeWarning, "NetworkPolicyNotEnforced", policyTroubleText(err))
}

func policyTroubleText(err error) string {
	return "NetworkPolicies cannot be enforced, pods that they select do not start: " + err.Error()
}

// policyCondition is the Node's condition, if there has been trouble.
func (a *Agent) policyCondition(old []corev1.NodeCondition) (c corev1.NodeCondition, ok bool) {
	if err := a.policyTrouble.Load(); err != nil {
		return corev1.NodeCondition{
			Type: policiesUnavailable, Status: corev1.ConditionTrue, Reason: "NFTablesFailed", Message: policyTroubleText(*err),
		}, true
	}
	return corev1.NodeCondition{
		Type: policiesUnavailable, Status: corev1.ConditionFalse, Reason: "NoTrouble", Message: "nothing keeps NetworkPolicies from being enforced",
	}, slices.ContainsFunc(old, func(o corev1.NodeCondition) bool { return o.Type == policiesUnavailable })
}

// removePolicies takes away what an agent that enforced them has left.
func (a *Agent) removePolicies() {
	ctx, cancel := context.WithTimeout(context.Background(), criTimeout)
	defer cancel()
	if err := policy.Remove(ctx); err != nil && !errors.Is(err, nftables.ErrUnavailable) {
		a.log.Warn("rules of NetworkPolicies are left on this node", "err", err)
	}
}

// runningAddresses are the addresses of the pods in which containers have been started.
func (a *Agent) runningAddresses(ctx context.Context) (map[types.UID][]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, criTimeout)
	defer cancel()
	containers, err := a.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{podspec.LabelNode: a.cfg.NodeName}},
	})
	if err != nil {
		return nil, err
	}
	running := map[types.UID][]netip.Addr{}
	for _, c := range containers.Containers {
		uid := types.UID(c.Labels[podspec.LabelPodUID])
		if _, seen := running[uid]; seen {
			continue
		}
		state, err := a.cri.podState(ctx, uid)
		if err != nil {
			return nil, err
		}
		running[uid] = podAddresses(state)
	}
	return running, nil
}

// podAddresses are those of a pod's ready sandbox; none on the node's network.
func podAddresses(state *podstate.State) (addresses []netip.Addr) {
	for _, ip := range state.PodIPs(&corev1.Pod{}, nil) {
		if address, err := netip.ParseAddr(ip); err == nil {
			addresses = append(addresses, address.Unmap())
		}
	}
	return addresses
}

// protectTimeout bounds how long a pod's start waits for its rules; then it is tried again, as after any failure.
const protectTimeout = 30 * time.Second

// protect has the kernel know the rules of a pod before anything starts in it.
func (w *worker) protect(ctx context.Context, pod *corev1.Pod, state *podstate.State) error {
	if w.a.policies == nil || pod.Spec.HostNetwork {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, protectTimeout)
	defer cancel()
	if err := w.a.policies.Protect(ctx, w.uid, podAddresses(state)); err != nil {
		w.a.event(pod, nil, corev1.EventTypeWarning, "FailedNetworkPolicy", err.Error())
		return err
	}
	return nil
}

// unprotect forgets the rules of a pod of which nothing is left.
func (w *worker) unprotect() {
	if w.a.policies != nil {
		w.a.policies.Forget(w.uid)
	}
}
