package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// ownWrites keeps a reconciler from being misled by its own informer cache.
//
// The cache shows the world as it was at some resourceVersion, a few milliseconds ago. That is fine for other people's
// writes: a reconciler that misses one is woken again by its event. It is not fine for our own. Imagine a ReplicaSet of 3:
//
//	reconcile #1   cache: 0 pods      → creates a, b, c
//	event          pod a arrives in the cache and wakes the ReplicaSet
//	reconcile #2   cache: only a      → "two are missing", creates d, e: five pods
//
// Kubernetes has called the cure "expectations". Here it is two plain facts:
//
//   - Every write returns the revision at which it happened, and revisions only grow. An owner whose last creation was at
//     revision N is left alone until the cache says it has reached N: then every pod we made is in it, or was deleted since.
//     No timeout is involved, and a relist that skips over events is no special case. (It relies on client-go's AtomicFIFO
//     feature, on by default since 0.36: without it a store does not know its revision, and nothing would be created twice
//     only because nothing would be created.)
//   - A deletion returns no revision to a typed client. The uid is remembered instead, and such a pod counts as gone until
//     the cache agrees (it is absent or has a deletionTimestamp).
//
// Deterministic pod names would solve the first half too (a second creation would fail), but every client expects the names
// of a ReplicaSet's pods to be random.
//
// Not covered: a creation whose answer is lost. It may have happened; the pod then appears later and is one too many, and
// the reconciler deletes the surplus.
type ownWrites struct {
	mu     sync.Mutex // guards owners; never held while calling out
	owners map[types.NamespacedName]*ownerWrites
}

type ownerWrites struct {
	uid types.UID
	// created is the resourceVersion of the latest creation, "" if none awaits the cache.
	created string
	// deleted are uids of objects that we deleted and the cache may still show as alive.
	deleted sets.Set[types.UID]
}

func newOwnWrites() *ownWrites {
	return &ownWrites{owners: map[types.NamespacedName]*ownerWrites{}}
}

// of returns the record of an owner; another uid under the same name starts from nothing. Call with mu held.
func (w *ownWrites) of(owner types.NamespacedName, uid types.UID) *ownerWrites {
	record := w.owners[owner]
	if record == nil || record.uid != uid {
		record = &ownerWrites{uid: uid, deleted: sets.New[types.UID]()}
		w.owners[owner] = record
	}
	return record
}

// recordCreate remembers a creation. Several happen in parallel, so the highest revision counts.
func (w *ownWrites) recordCreate(owner types.NamespacedName, uid types.UID, resourceVersion string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	record := w.of(owner, uid)
	if record.created == "" || !reached(record.created, resourceVersion) {
		record.created = resourceVersion
	}
}

func (w *ownWrites) recordDelete(owner types.NamespacedName, uid, deleted types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(owner, uid).deleted.Insert(deleted)
}

// caughtUp says whether the store shows everything that was created for the owner.
func (w *ownWrites) caughtUp(owner types.NamespacedName, uid types.UID, store cache.Store) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	record := w.of(owner, uid)
	if record.created != "" && !reached(store.LastStoreSyncResourceVersion(), record.created) {
		return false
	}
	record.created = ""
	return true
}

// stillShown returns those of our deletions that are in alive, the uids that the cache shows without a deletionTimestamp,
// and forgets the others.
func (w *ownWrites) stillShown(owner types.NamespacedName, uid types.UID, alive sets.Set[types.UID]) sets.Set[types.UID] {
	w.mu.Lock()
	defer w.mu.Unlock()
	record := w.of(owner, uid)
	record.deleted = record.deleted.Intersection(alive)
	return record.deleted.Clone()
}

func (w *ownWrites) forget(owner types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.owners, owner)
}

// reached compares resourceVersions, which are numbers of any length. What is no number (the store knows none yet) has
// not reached anything.
func reached(have, want string) bool {
	order, err := resourceversion.CompareResourceVersion(have, want)
	return err == nil && order >= 0
}
