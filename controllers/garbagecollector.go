package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
)

// garbageCollector deletes objects whose owners are all gone, and carries out the cascade that a deletion asked for
// (metav1.DeletionPropagation):
//
//	Background  the owner is gone at once; its dependents are deleted because their owner does not exist
//	Foreground  the owner stays, with the finalizer foregroundDeletion, until the dependents that block it are gone
//	Orphan      the owner stays, with the finalizer orphan, until the references of its dependents are removed
//
// gc_graph.go says what is worth a look, gc_monitors.go feeds it. Here a look is taken: a Request's name is a uid.
//
// An object is deleted only after the API server itself has said that its owners do not exist: the graph may be behind, and
// a deletion cannot be taken back.
type garbageCollector struct {
	metadata metadata.Interface
	graph    *ownerGraph
	monitors *monitors
	recorder record.EventRecorder
}

func (gc *garbageCollector) Reconcile(ctx context.Context, req Request) (Result, error) {
	if !gc.monitors.ready() { // an owner that was not listed yet would look absent
		return Result{RequeueAfter: monitorSyncPoll}, nil
	}
	n := gc.graph.get(types.UID(req.Name))
	switch {
	case n == nil:
		return Result{}, nil
	case n.orphansDependents():
		return Result{}, gc.orphan(ctx, n)
	case n.waitsForDependents():
		return Result{}, gc.waitForDependents(ctx, n)
	case n.deleting:
		return Result{}, nil // waits for somebody else's finalizer, or for the node
	}
	return Result{}, gc.collect(ctx, n)
}

// collect decides about an object that nobody has deleted.
func (gc *garbageCollector) collect(ctx context.Context, n *graphNode) error {
	if gc.ownersKnown(n) {
		return nil
	}
	live, err := gc.live(ctx, n)
	if live == nil || err != nil {
		return err
	}
	owners, err := gc.classify(ctx, n, live.OwnerReferences)
	if err != nil {
		return err
	}
	switch {
	case len(live.OwnerReferences) == 0 || len(owners.absent)+len(owners.waiting) == 0:
		return nil
	case len(owners.solid) > 0: // one owner is enough to live; the useless references go
		_, err := gc.patch(ctx, n, map[string]any{"resourceVersion": live.ResourceVersion, "ownerReferences": owners.solid})
		return err
	case len(owners.waiting) > 0 && len(gc.graph.dependentsOf(n.uid)) > 0:
		return gc.deleteInForeground(ctx, n, live)
	}
	return gc.delete(ctx, n, live, propagationOf(live))
}

// propagationOf keeps to what the object's own finalizers ask for.
func propagationOf(live *metav1.PartialObjectMetadata) metav1.DeletionPropagation {
	switch {
	case slices.Contains(live.Finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(live.Finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// ownersKnown is the cheap answer to most requests: every owner is in the graph and none is waiting. If the graph is behind,
// the owner's own deletion event brings us here again.
func (gc *garbageCollector) ownersKnown(n *graphNode) bool {
	for _, ref := range n.owners {
		owner := gc.graph.get(ref.UID)
		if owner == nil || !owner.isAt(ref, n.namespace) || owner.waitsForDependents() {
			return false
		}
	}
	return true
}

// live reads the object; nil if it is gone or another has its name, in which case the graph forgets it.
func (gc *garbageCollector) live(ctx context.Context, n *graphNode) (*metav1.PartialObjectMetadata, error) {
	live, err := gc.client(n).Get(ctx, n.name, metav1.GetOptions{})
	if gone(err) || err == nil && live.UID != n.uid {
		gc.monitors.enqueue(gc.graph.forget(n.uid))
		return nil, nil
	}
	return live, err
}

func (gc *garbageCollector) client(n *graphNode) metadata.ResourceInterface {
	if n.resource.namespaced {
		return gc.metadata.Resource(n.resource.gvr).Namespace(n.namespace)
	}
	return gc.metadata.Resource(n.resource.gvr)
}

// ownerSets divides owner references: solid owners exist, absent ones do not, waiting ones are being deleted in the
// foreground and wait for this object.
type ownerSets struct {
	solid, absent, waiting []metav1.OwnerReference
}

func (gc *garbageCollector) classify(ctx context.Context, n *graphNode, refs []metav1.OwnerReference) (ownerSets, error) {
	var out ownerSets
	for _, ref := range refs {
		owner, err := gc.liveOwner(ctx, n, ref)
		switch {
		case err != nil:
			return out, err
		case owner == nil:
			out.absent = append(out.absent, ref)
		case owner.DeletionTimestamp != nil && slices.Contains(owner.Finalizers, metav1.FinalizerDeleteDependents):
			out.waiting = append(out.waiting, ref)
		default:
			out.solid = append(out.solid, ref)
		}
	}
	return out, nil
}

// liveOwner reads the object that a reference names, nil if there is none with that uid. A namespaced owner is looked for in
// the dependent's namespace: owners in other namespaces do not exist, by definition. A kind that is not served is an error,
// also if the server has stopped serving it since the last discovery: its objects may still be there, only unreachable, so
// nothing is deleted on their account.
func (gc *garbageCollector) liveOwner(ctx context.Context, n *graphNode, ref metav1.OwnerReference) (*metav1.PartialObjectMetadata, error) {
	res, ok := gc.monitors.lookup(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
	if !ok {
		return nil, fmt.Errorf("%w: %s %s, owner of %s %s/%s", ErrUnknownKind, ref.APIVersion, ref.Kind, n.resource.kind, n.namespace, n.name)
	}
	if res.namespaced && !n.resource.namespaced {
		gc.recorder.Eventf(n.reference(), corev1.EventTypeWarning, "OwnerRefInvalidNamespace",
			"ownerRef %s %q is namespaced, but a cluster-scoped object cannot have a namespaced owner", ref.Kind, ref.Name)
		return &metav1.PartialObjectMetadata{}, nil // treated as there: a mistake must not cost the object
	}
	client := gc.client(&graphNode{resource: res, namespace: n.namespace})
	owner, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
	if objectNotFound(err, ref.Name) || err == nil && owner.UID != ref.UID {
		return nil, nil
	}
	return owner, err
}

// objectNotFound tells "there is no such object" from "there is no such path", which is a 404 as well.
func objectNotFound(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name
}

func (n *graphNode) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: n.apiVersion, Kind: n.resource.kind, Namespace: n.namespace, Name: n.name, UID: n.uid}
}

// deleteInForeground passes the cascade on: the object's own dependents go before it. In a circle everybody would wait for
// everybody, so a dependent that already waits is no longer allowed to be blocked by this object.
func (gc *garbageCollector) deleteInForeground(ctx context.Context, n *graphNode, live *metav1.PartialObjectMetadata) error {
	if slices.ContainsFunc(gc.graph.dependentsOf(n.uid), (*graphNode).waitsForDependents) {
		refs := slices.Clone(live.OwnerReferences)
		for i := range refs {
			refs[i].BlockOwnerDeletion = nil
		}
		patched, err := gc.patch(ctx, n, map[string]any{"resourceVersion": live.ResourceVersion, "ownerReferences": refs})
		if patched == nil || err != nil {
			return err
		}
		live = patched
	}
	return gc.delete(ctx, n, live, metav1.DeletePropagationForeground)
}

// delete carries uid and resourceVersion: if somebody changed the object (its owners perhaps) since we read it, it fails
// with a conflict and is looked at again.
func (gc *garbageCollector) delete(
	ctx context.Context, n *graphNode, live *metav1.PartialObjectMetadata, propagation metav1.DeletionPropagation,
) error {
	err := gc.client(n).Delete(ctx, n.name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
		PropagationPolicy: &propagation,
	})
	if gone(err) {
		return nil
	}
	return err
}

// waitForDependents carries out a foreground deletion: it has the dependents looked at, which will delete them, and lets the
// owner go when none is left that blocks.
func (gc *garbageCollector) waitForDependents(ctx context.Context, n *graphNode) error {
	blocked := false
	for _, dependent := range gc.graph.dependentsOf(n.uid) {
		blocked = blocked || blocks(dependent, n.uid)
		if !dependent.deleting {
			gc.monitors.enqueue([]types.UID{dependent.uid})
		}
	}
	if blocked {
		return nil
	}
	return gc.removeFinalizer(ctx, n, metav1.FinalizerDeleteDependents)
}

// orphan removes the references to n from its dependents, and lets n go when all are free.
func (gc *garbageCollector) orphan(ctx context.Context, n *graphNode) error {
	for _, dependent := range gc.graph.dependentsOf(n.uid) {
		live, err := gc.live(ctx, dependent)
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(live.OwnerReferences), func(ref metav1.OwnerReference) bool { return ref.UID == n.uid })
		if len(kept) == len(live.OwnerReferences) {
			continue
		}
		if _, err := gc.patch(ctx, dependent, map[string]any{"resourceVersion": live.ResourceVersion, "ownerReferences": kept}); err != nil {
			return err
		}
	}
	return gc.removeFinalizer(ctx, n, metav1.FinalizerOrphanDependents)
}

func (gc *garbageCollector) removeFinalizer(ctx context.Context, n *graphNode, finalizer string) error {
	live, err := gc.live(ctx, n)
	if live == nil || err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(live.Finalizers), func(f string) bool { return f == finalizer })
	if len(kept) == len(live.Finalizers) {
		return nil
	}
	_, err = gc.patch(ctx, n, map[string]any{"resourceVersion": live.ResourceVersion, "finalizers": kept})
	return err
}

// patch changes metadata with a JSON merge patch, which every kind understands; the resourceVersion in it makes it fail on
// a newer version, since a merge patch replaces whole lists. It returns nil for an object that is gone.
func (gc *garbageCollector) patch(ctx context.Context, n *graphNode, meta map[string]any) (*metav1.PartialObjectMetadata, error) {
	meta["uid"] = n.uid
	data, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, err
	}
	patched, err := gc.client(n).Patch(ctx, n.name, types.MergePatchType, data, metav1.PatchOptions{})
	if gone(err) {
		return nil, nil
	}
	return patched, err
}
