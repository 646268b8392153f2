// Package ownership keeps account of who set which field of an object, in metadata.managedFields, and merges by it what
// server-side apply sends (https://kubernetes.io/docs/reference/using-api/server-side-apply/). The merging itself is
// apimachinery's (managedfields, structured-merge-diff); what is here says for each row of the table which fields its objects
// have, in which versions, and which of them a request can own.
//
//	tracker.go     one Tracker for a server; what becomes of a create, an update, an apply
//	created.go     a new object in one walk, where apimachinery compares it with nothing
//	versions.go    entries name fields as they are called in the version of their request
//	resets.go      what a request cannot set, it cannot own
//	views.go       owners of a scale are owners of its parent's spec.replicas
//	manager.go     what the one is called who asks
//	timestamps.go  newer times alone are no change
//
// Invariants:
//   - Field managers are made when first needed, one for a row and subresource, and kept until Forget.
//   - The objects that are compared are the caller's own: they get their kind set, and managedFields.
//   - A new object has the same owners by created.go as by apimachinery; a test has both look at random objects of all kinds.
//
// Read tracker.go first.
package ownership
