// Package flowcontrol decides which request may run now, which one waits, and which one is turned away, so
// that no client starves the others: API Priority and Fairness, as
// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/ describes it, driven by the
// FlowSchema and PriorityLevelConfiguration objects of the cluster.
//
// A request is matched with the first FlowSchema that fits it, in order of matchingPrecedence. The schema
// names a priority level, and its distinguisher (the user, or the namespace) tells the flows in it apart.
// A level has a share of the server's seats, Config.Seats in all. A request takes one seat while it is
// served. When there is none left, it waits in one of the level's queues:
//
//	request ─ match ─► schema ─► level ─► hand of queues, dealt by flow ─► the shortest of them
//	                                                                             │
//	           a seat gets free ─► the queue that has had the least work so far ─┘
//
// Shuffle sharding: each flow has a few queues of many, so a flow that fills all of its own hardly ever
// fills all of another's. Fair queuing: queues are served by how many seconds of work they have had, not
// in the order of arrival, so a flow with many requests waits behind its own.
//
// Differences from kube-apiserver: every request takes one seat, lists too; and a level borrows what
// another one does not use at once, and gives it back as its requests end, instead of by an adjustment
// every ten seconds. What lendablePercent and borrowingLimitPercent bound is the same.
//
// Invariants:
//   - A level that uses less than its nominal seats never waits: others may borrow no more than is lendable.
//   - A queue holds at most queueLengthLimit requests, and none waits longer than Config.MaxWait.
//   - A seat that was given is given back once, whatever becomes of the request.
//
// Read first: controller.go, then level.go, queue.go and match.go. defaults.go has the objects that every cluster begins with.
package flowcontrol
