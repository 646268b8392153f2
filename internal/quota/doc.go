// Package quota says how objects count against ResourceQuotas: what one object uses, which quotas it concerns, and
// what is left of them. Admission charges by it and the quota controller recounts by it, so that both come to the
// same figures.
//
// A Measure knows one resource. Those of pods, services, claims and device claims know what their objects ask for;
// every other resource is counted by the number of its objects ("count/deployments.apps").
//
// Invariants:
//   - What an object uses depends on the object and the clock alone.
//   - Used names a resource if and only if some Measure tracks it, with zero if there is nothing.
//   - Objects and quotas are read, never changed.
//
// Read measure.go first, then charge.go for admission's side and recount.go for the controller's.
// The rules are those of https://kubernetes.io/docs/concepts/policy/resource-quotas/.
package quota
