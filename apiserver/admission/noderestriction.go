package admission

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kontiki/apiserver/nodeauth"
)

// nodeRestriction keeps a node from writing what only its name, which the authorizer sees, would allow: another node's
// object, labels and taints by which pods could be drawn to it, pods that are no mirror of its own static ones.
type nodeRestriction struct{}

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
	// restrictedLabels are for administrators: a node cannot give itself one.
	restrictedLabels = "node-restriction.kubernetes.io"
)

// Validate implements Validator.
func (nodeRestriction) Validate(_ context.Context, r *Request) error {
	node, ok := strings.CutPrefix(r.User.Username, nodeUserPrefix)
	if !ok || !slices.Contains(r.User.Groups, nodesGroup) {
		return nil
	}
	switch o := r.Object.(type) {
	case *corev1.Node:
		return judgeNode(r, node, o)
	case *corev1.Pod:
		return judgeNodesPod(r, node, o)
	case *coordinationv1.Lease:
		if o.Namespace != corev1.NamespaceNodeLease || o.Name != node {
			return refused(r, "node %q can only access its own lease", node)
		}
	case *storagev1.CSINode:
		if o.Name != node {
			return refused(r, "node %q can only access its own CSINode", node)
		}
	}
	return nil
}

func judgeNode(r *Request, node string, wanted *corev1.Node) error {
	if wanted.Name != node {
		return refused(r, "node %q is not allowed to modify node %q", node, wanted.Name)
	}
	old, _ := r.Old.(*corev1.Node)
	if old == nil {
		old = &corev1.Node{Spec: corev1.NodeSpec{Taints: wanted.Spec.Taints}} // it may come with taints, which only keep pods away
	}
	if !equality.Semantic.DeepEqual(wanted.Spec.Taints, old.Spec.Taints) {
		return refused(r, "node %q is not allowed to modify taints", node)
	}
	if !equality.Semantic.DeepEqual(wanted.OwnerReferences, old.OwnerReferences) {
		return refused(r, "node %q is not allowed to modify its owner references", node)
	}
	for _, labels := range []map[string]string{wanted.Labels, old.Labels} {
		for key := range labels {
			prefix, _, _ := strings.Cut(key, "/")
			restricted := prefix == restrictedLabels || strings.HasSuffix(prefix, "."+restrictedLabels)
			if was, had := old.Labels[key]; restricted && (!had || was != wanted.Labels[key]) {
				return refused(r, "is not allowed to modify labels: %s", key)
			}
		}
	}
	return nil
}

func judgeNodesPod(r *Request, node string, pod *corev1.Pod) error {
	if pod.Spec.NodeName != node {
		return refused(r, "node %q can only write pods with spec.nodeName set to itself", node)
	}
	if old, ok := r.Old.(*corev1.Pod); ok {
		if !equality.Semantic.DeepEqual(pod.Labels, old.Labels) {
			return refused(r, "node %q cannot update labels through pod status", node)
		}
		return nil
	}
	switch {
	case !isMirror(pod):
		return refused(r, "pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, node)
	case pod.Spec.ServiceAccountName != "":
		return refused(r, "node %q can not create pods that reference a service account", node)
	case nodeauth.NeedsObjects(pod), slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil }):
		return refused(r, "node %q can not create pods that reference secrets, config maps, claims or tokens", node)
	}
	return nil
}
