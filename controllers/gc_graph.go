package controllers

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// graphNode is what the garbage collector knows of one object.
type graphNode struct {
	uid             types.UID
	resource        resource
	apiVersion      string
	namespace, name string
	owners          []metav1.OwnerReference
	finalizers      []string
	deleting        bool
}

func (n *graphNode) waitsForDependents() bool {
	return n.deleting && slices.Contains(n.finalizers, metav1.FinalizerDeleteDependents)
}

func (n *graphNode) orphansDependents() bool {
	return n.deleting && slices.Contains(n.finalizers, metav1.FinalizerOrphanDependents)
}

// isAt says whether an owner reference found on an object of the namespace points at this node. The uid alone is not
// enough: a reference may name a uid that exists under quite another kind or in another namespace (kubernetes #92743).
func (n *graphNode) isAt(ref metav1.OwnerReference, namespace string) bool {
	return n.uid == ref.UID && n.name == ref.Name && n.resource.kind == ref.Kind &&
		groupOf(n.apiVersion) == groupOf(ref.APIVersion) && (!n.resource.namespaced || n.namespace == namespace)
}

// ownerGraph is the picture of who owns whom, drawn from informers. It is always a little late, so it only says what is
// worth a look; before anything is deleted the API server is asked.
//
// Example. Deployment D owns ReplicaSet R owns pods P and Q:
//
//	objects     D, R{owners: D}, P{owners: R}, Q{owners: R}
//	dependents  D → {R}   R → {P, Q}
//
// When D goes, forget(D) returns {R}: R's owners must be checked. When a pod appears whose owner is not in objects, observe
// returns the pod itself: the owner may have gone before.
type ownerGraph struct {
	mu      sync.Mutex // guards both maps; a leaf
	objects map[types.UID]*graphNode
	// dependents has an entry for every uid that some object names as an owner, whether the owner exists or not.
	dependents map[types.UID]sets.Set[types.UID]
}

func newOwnerGraph() *ownerGraph {
	return &ownerGraph{objects: map[types.UID]*graphNode{}, dependents: map[types.UID]sets.Set[types.UID]{}}
}

// observe enters a new version of an object. It returns the uids that are worth a look because of it.
func (g *ownerGraph) observe(n *graphNode) (look []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.objects[n.uid]
	if before != nil {
		g.unlink(before)
	}
	g.objects[n.uid] = n
	for _, ref := range n.owners {
		if g.dependents[ref.UID] == nil {
			g.dependents[ref.UID] = sets.New[types.UID]()
		}
		g.dependents[ref.UID].Insert(n.uid)
		// A missing owner, or one that waits for this object to go.
		if owner := g.objects[ref.UID]; owner == nil || !owner.isAt(ref, n.namespace) || owner.waitsForDependents() {
			look = append(look, n.uid)
		}
	}
	if n.deleting {
		look = append(look, n.uid)
	}
	if before != nil {
		look = append(look, g.waitingOwners(before)...) // a reference may have been removed or no longer block
	}
	return look
}

// forget removes an object. It returns its dependents, which have lost an owner, and its owners that wait for it.
func (g *ownerGraph) forget(uid types.UID) (look []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.objects[uid]
	if n == nil {
		return nil
	}
	delete(g.objects, uid)
	g.unlink(n)
	return append(g.waitingOwners(n), g.dependents[uid].UnsortedList()...)
}

// forgetResource removes all objects of a resource that is no longer served.
func (g *ownerGraph) forgetResource(gvr schema.GroupVersionResource) (look []types.UID) {
	g.mu.Lock()
	var uids []types.UID
	for uid, n := range g.objects {
		if n.resource.gvr == gvr {
			uids = append(uids, uid)
		}
	}
	g.mu.Unlock()
	for _, uid := range uids {
		look = append(look, g.forget(uid)...)
	}
	return look
}

func (g *ownerGraph) unlink(n *graphNode) {
	for _, ref := range n.owners {
		g.dependents[ref.UID].Delete(n.uid)
		if g.dependents[ref.UID].Len() == 0 {
			delete(g.dependents, ref.UID)
		}
	}
}

func (g *ownerGraph) waitingOwners(n *graphNode) (waiting []types.UID) {
	for _, ref := range n.owners {
		if owner := g.objects[ref.UID]; owner != nil && owner.waitsForDependents() {
			waiting = append(waiting, owner.uid)
		}
	}
	return waiting
}

// get returns an object, or nil. Nodes are never changed after they were entered.
func (g *ownerGraph) get(uid types.UID) *graphNode {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.objects[uid]
}

// dependentsOf returns the objects that name the uid as an owner.
func (g *ownerGraph) dependentsOf(uid types.UID) []*graphNode {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*graphNode, 0, g.dependents[uid].Len())
	for dependent := range g.dependents[uid] {
		out = append(out, g.objects[dependent])
	}
	return out
}

// blocks says whether the dependent holds up the foreground deletion of the owner.
func blocks(dependent *graphNode, owner types.UID) bool {
	return slices.ContainsFunc(dependent.owners, func(ref metav1.OwnerReference) bool {
		return ref.UID == owner && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
	})
}
