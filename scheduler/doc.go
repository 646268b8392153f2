// Package scheduler decides on which node a pod runs. It is an API client: it watches pods, nodes and services, and its only
// effects are a pod's binding subresource, a PodScheduled condition, and events.
//
// # Where to start
//
// scheduler.go has the loop: take a pod from the queue, filter the nodes that cannot run it, score the others, assume the
// pod on the best, bind. Then filter.go and score.go, which are lists of small pure functions; queue.go (who waits, and what
// wakes them); cache.go (what is in use on each node).
//
// # Invariants
//
//   - Decisions are taken one after the other, by one goroutine, on a cache that already contains the decisions before:
//     a pod counts on its node from the moment it is chosen ("assumed"), not from when the API server tells. Only the
//     binding itself, which waits for the API server, runs in parallel.
//   - A pod's request is what k8s.io/component-helpers/resource computes, the same numbers that the node agent admits by
//     and `kubectl describe node` prints. A pod counts until it has ended or is gone: one that is terminating still runs.
//   - A pod that fits nowhere waits for an event that could change that, with a growing back-off.
//
// Not yet: preemption (a pod never evicts another, whatever its priority; priority only orders the queue), topology spread
// constraints, preferred pod affinity, volumes, dynamic resource allocation, scheduler profiles and extenders.
package scheduler
