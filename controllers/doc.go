// Package controllers runs Kontiki's reconcilers: loops that compare what an object's spec asks for with what the API
// server shows, and write the difference back. They are API clients like any other (client-go informers and typed
// clients) and import nothing of the store or the API server, so that they could run in another process.
//
// # Where to start
//
// runner.go is the machine that every reconciler shares: informer event → Request in a queue → Reconcile. Then read
// replicaset.go, the smallest reconciler that creates something, with ownwrites.go, which explains why an informer's cache
// may lie about the recent past and what to do about it. deployment.go drives ReplicaSets; garbagecollector.go is the largest.
//
// # Invariants
//
//   - A reconciler is level-triggered: it looks at the present state and never at the event that woke it. An event that is
//     merged with another, repeated, or replaced by a relist changes nothing.
//   - The same Request is never reconciled by two workers at once (the work queue sees to it).
//   - Writes are guarded: updates carry a resourceVersion, deletions a uid, so a decision that was taken on an old copy
//     fails with a conflict and is taken again, instead of undoing somebody else's work.
//   - Objects in an informer's cache are shared and read-only; a reconciler copies before it changes one.
//   - Reconcile returning nil means: nothing more to do until something changes, or RequeueAfter has passed.
//
// Not yet: DaemonSet, StatefulSet, Job and CronJob, volumes.
package controllers
