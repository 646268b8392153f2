package admission

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// nodeRestriction keeps a node from writing what only its name, which the authorizer sees, would allow: another node's
// object (nodeidentities.go), pods that are not on it or no mirror of its own static ones (nodepods.go), labels and taints by which pods could be
// drawn to it.
type nodeRestriction struct{ objects Objects }

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
	// restrictedLabels are for administrators: a node cannot give itself one.
	restrictedLabels = "node-restriction.kubernetes.io"
)

// nodeNameOf is the node that asks; empty if it is somebody else.
func nodeNameOf(user authenticationv1.UserInfo) string {
	node, ok := strings.CutPrefix(user.Username, nodeUserPrefix)
	if !ok || !slices.Contains(user.Groups, nodesGroup) {
		return ""
	}
	return node
}

// Validate implements Validator.
func (n nodeRestriction) Validate(ctx context.Context, r *Request) error {
	node := nodeNameOf(r.User)
	if node == "" {
		return nil
	}
	switch r.Resource.GroupResource().String() {
	case "nodes":
		return judgeNode(r, node)
	case "pods":
		return n.judgePod(ctx, r, node)
	case "persistentvolumeclaims":
		return judgeNodesClaim(r, node)
	case "leases.coordination.k8s.io":
		if r.Namespace != corev1.NamespaceNodeLease || r.Name != node {
			return refused(r, "node %q can only access its own lease", node)
		}
	case "resourceslices.resource.k8s.io":
		return judgeSlice(r, node)
	case "podcertificaterequests.certificates.k8s.io":
		return n.judgeCertificateRequest(ctx, r, node)
	case "csinodes.storage.k8s.io":
		if r.Name != node {
			return refused(r, "node %q can only access its own CSINode", node)
		}
	}
	return nil
}

func judgeNode(r *Request, node string) error {
	if r.Name != node {
		return refused(r, "node %q is not allowed to modify node %q", node, r.Name)
	}
	wanted, ok := r.Object.(*corev1.Node)
	if !ok {
		return nil
	}
	old, _ := r.Old.(*corev1.Node)
	if old == nil {
		old = &corev1.Node{Spec: corev1.NodeSpec{Taints: wanted.Spec.Taints}} // it may come with taints, which only keep pods away
	}
	if !equality.Semantic.DeepEqual(wanted.Spec.Taints, old.Spec.Taints) {
		return refused(r, "node %q is not allowed to modify taints", node)
	}
	if !equality.Semantic.DeepEqual(wanted.OwnerReferences, old.OwnerReferences) {
		return refused(r, "node %q is not allowed to modify ownerReferences", node)
	}
	if keys := restrictedChanges(wanted.Labels, old.Labels); len(keys) > 0 {
		if r.Operation == Create {
			return refused(r, "node %q is not allowed to set the following labels: %s", node, strings.Join(keys, ", "))
		}
		return refused(r, "is not allowed to modify labels: %s", strings.Join(keys, ", "))
	}
	return nil
}

// restrictedChanges are the labels that differ and that a node may not change.
func restrictedChanges(now, before map[string]string) (keys []string) {
	for _, labels := range []map[string]string{now, before} {
		for key := range labels {
			was, had := before[key]
			is, has := now[key]
			if (was != is || had != has) && restrictedLabel(key) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// kubeletLabels are those of Kubernetes' own that describe the machine.
var kubeletLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// restrictedLabel: those for administrators, and those of Kubernetes that are not for nodes.
func restrictedLabel(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified || slices.Contains(kubeletLabels, key) {
		return false
	}
	within := func(suffix string) bool { return domain == suffix || strings.HasSuffix(domain, "."+suffix) }
	if within(restrictedLabels) {
		return true
	}
	return (within("kubernetes.io") || within("k8s.io")) && !within("kubelet.kubernetes.io") && !within("node.kubernetes.io")
}

// judgeNodesClaim lets a node tell how large a claim has become, and nothing else.
func judgeNodesClaim(r *Request, node string) error {
	if r.Subresource != "status" {
		return refused(r, "may only update PVC status")
	}
	rest := func(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
		c = c.DeepCopy()
		c.ResourceVersion, c.ManagedFields = "", nil
		c.Status.Capacity, c.Status.Conditions, c.Status.AllocatedResources, c.Status.AllocatedResourceStatuses = nil, nil, nil, nil
		return c
	}
	claim, ok := r.Object.(*corev1.PersistentVolumeClaim)
	old, too := r.Old.(*corev1.PersistentVolumeClaim)
	if !ok || !too || !equality.Semantic.DeepEqual(rest(claim), rest(old)) {
		return refused(r, "node %q is not allowed to update fields other than status.quantity and status.conditions", node)
	}
	return nil
}
