package nodeauth

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kontiki/apiserver/rbac"
)

const (
	userPrefix = "system:node:"
	groupNodes = "system:nodes"
	nodeRole   = "system:node"
	leaseSpace = corev1.NamespaceNodeLease
)

// NodeOf returns the name of the node that a user is; ok is false for users who are none.
func NodeOf(user rbac.User) (name string, ok bool) {
	name, ok = strings.CutPrefix(user.Name, userPrefix)
	return name, ok && name != "" && slices.Contains(user.Groups, groupNodes)
}

// Pods are the pods that are on nodes, and the claims that they use.
type Pods interface {
	// On returns the pods on a node: of a namespace, or all if it is empty. They are shared and not to be changed.
	On(ctx context.Context, node, namespace string) ([]*corev1.Pod, error)
	// ClaimOf returns namespace and name of the claim that a volume is bound to; empty if there is none.
	ClaimOf(ctx context.Context, volume string) (namespace, name string, err error)
}

// Allow decides on a node's request. The reason of a no is empty when the role is what does not allow it.
func Allow(ctx context.Context, node string, r rbac.Request, policy *rbac.Policy, pods Pods) (reason string, ok bool) {
	if !policy.RoleAllows(nodeRole, r) {
		return "", false
	}
	lacks := func(what string) (string, bool) {
		return fmt.Sprintf("no relationship found between node '%s' and this %s", node, what), false
	}
	needs := func(test func(*corev1.Pod) bool, namespace string) bool {
		list, err := pods.On(ctx, node, namespace)
		return err == nil && slices.ContainsFunc(list, test)
	}
	switch r.Group + "/" + r.Resource {
	case "/secrets":
		if r.Name == "" || !needs(func(p *corev1.Pod) bool { return referencesOf(p).secrets[r.Name] }, r.Namespace) {
			return lacks("object")
		}
	case "/configmaps":
		if r.Name == "" || !needs(func(p *corev1.Pod) bool { return referencesOf(p).configMaps[r.Name] }, r.Namespace) {
			return lacks("object")
		}
	case "/persistentvolumeclaims":
		if !needs(func(p *corev1.Pod) bool { return referencesOf(p).claims[r.Name] }, r.Namespace) {
			return lacks("object")
		}
	case "/persistentvolumes":
		namespace, claim, err := pods.ClaimOf(ctx, r.Name)
		if err != nil || claim == "" || !needs(func(p *corev1.Pod) bool { return referencesOf(p).claims[claim] }, namespace) {
			return lacks("object")
		}
	case "/serviceaccounts": // and tokens of it
		if !needs(func(p *corev1.Pod) bool { return p.Spec.ServiceAccountName == r.Name }, r.Namespace) {
			return lacks("service account")
		}
	case "/pods":
		reads := r.Verb == "get" || r.Verb == "list" || r.Verb == "watch"
		if !reads && r.Name != "" && !needs(func(p *corev1.Pod) bool { return p.Name == r.Name }, r.Namespace) {
			return fmt.Sprintf("node '%s' can only change pods that are on it", node), false
		}
	case "/nodes":
		if writes := r.Verb == "update" || r.Verb == "patch"; writes && r.Name != node {
			return fmt.Sprintf("node '%s' cannot change another node", node), false
		}
	case "coordination.k8s.io/leases":
		if r.Namespace != leaseSpace || r.Verb != "create" && r.Name != node {
			return "can only access the node's own lease", false
		}
	case "storage.k8s.io/csinodes":
		if r.Verb != "create" && r.Name != node {
			return "can only access the node's own CSINode", false
		}
	}
	return "", true
}
