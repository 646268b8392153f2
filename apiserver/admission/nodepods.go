package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver/nodeauth"
)

// judgePod lets a node make mirrors of its static pods, tell how pods on it are, evict them, and delete them when they
// have ended.
func (n nodeRestriction) judgePod(ctx context.Context, r *Request, node string) error {
	old, _ := r.Old.(*corev1.Pod)
	switch {
	case r.Operation == Connect, r.Subresource != "" && r.Subresource != "status" && r.Subresource != "eviction":
		return refused(r, "unexpected pod subresource %q, only 'status' and 'eviction' are allowed", r.Subresource)
	case r.Subresource == "eviction":
		found, err := n.objects.Get(ctx, pods, r.Namespace, r.Name)
		if err != nil {
			return err
		}
		if found.(*corev1.Pod).Spec.NodeName != node {
			return refused(r, "node %s can only evict pods with spec.nodeName set to itself", node)
		}
		return nil
	case r.Operation == Delete:
		if old == nil || old.Spec.NodeName != node {
			return refused(r, "node %q can only delete pods with spec.nodeName set to itself", node)
		}
		return nil
	case r.Subresource == "status":
		return judgePodStatus(r, node)
	case r.Operation == Create:
		return n.judgeMirror(ctx, r, node)
	}
	return refused(r, "unexpected operation %q, node %q can only create and delete mirror pods", r.Operation, node)
}

func judgePodStatus(r *Request, node string) error {
	pod, ok := r.Object.(*corev1.Pod)
	old, too := r.Old.(*corev1.Pod)
	switch {
	case !ok || !too || old.Spec.NodeName != node:
		return refused(r, "node %q can only update pod status for pods with spec.nodeName set to itself", node)
	case !equality.Semantic.DeepEqual(pod.Labels, old.Labels):
		return refused(r, "node %q cannot update labels through pod status", node)
	case !equality.Semantic.DeepEqual(pod.Status.ResourceClaimStatuses, old.Status.ResourceClaimStatuses):
		return refused(r, "node %q cannot update resource claim statues", node) // as kube-apiserver spells it
	case !equality.Semantic.DeepEqual(pod.Status.ExtendedResourceClaimStatus, old.Status.ExtendedResourceClaimStatus):
		return refused(r, "node %q cannot update extended resource claim status", node)
	}
	return nil
}

// judgeMirror: a mirror belongs to its node, and names nothing by which the node could get at what is not meant for it.
func (n nodeRestriction) judgeMirror(ctx context.Context, r *Request, node string) error {
	pod, ok := r.Object.(*corev1.Pod)
	switch {
	case !ok || !isMirror(pod):
		return refused(r, "pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, node)
	case pod.Spec.NodeName != node:
		return refused(r, "node %q can only create pods with spec.nodeName set to itself", node)
	}
	if err := n.judgeMirrorOwner(ctx, r, pod.OwnerReferences, node); err != nil {
		return err
	}
	switch {
	case pod.Spec.ServiceAccountName != "":
		return refused(r, "node %q can not create pods that reference a service account", node)
	case nodeauth.NeedsObjects(pod), slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil }):
		return refused(r, "node %q can not create pods that reference secrets, config maps, claims or tokens", node)
	}
	return nil
}

// judgeMirrorOwner: the node's own object, the one of now, is the pod's controller, so that the pod goes when the node goes.
func (n nodeRestriction) judgeMirrorOwner(ctx context.Context, r *Request, owners []metav1.OwnerReference, node string) error {
	if len(owners) > 1 {
		return refused(r, "node %q can only create pods with a single owner reference set to itself", node)
	}
	if len(owners) == 0 || owners[0].APIVersion != "v1" || owners[0].Kind != "Node" || owners[0].Name != node {
		return refused(r, "node %q can only create pods with an owner reference set to itself", node)
	}
	owner := &owners[0]
	if owner.Controller == nil || !*owner.Controller {
		return refused(r, "node %q can only create pods with a controller owner reference set to itself", node)
	}
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		return refused(r, "node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	found, err := n.objects.Get(ctx, nodes, "", node)
	if err != nil {
		return err
	}
	if uid := found.(*corev1.Node).UID; owner.UID != uid {
		return refused(r, "node %s UID mismatch: expected %s got %s", node, owner.UID, uid)
	}
	return nil
}
