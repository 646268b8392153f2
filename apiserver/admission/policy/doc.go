// Package policy evaluates the admission policies of the cluster, which are written in CEL: the plugins
// ValidatingAdmissionPolicy and MutatingAdmissionPolicy, which follow the objects of these kinds and their bindings
// (https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ and …/mutating-admission-policy/).
//
//	policies.go     the policies in use, with their bindings
//	compile.go      one policy, compiled
//	invocations.go  which policies a request meets, through which bindings, with which parameters
//	params.go       parameters
//	validate.go     the validating plugin: what becomes of what policies decide
//	evaluate.go     one validating policy: what it decides
//	mutate.go       the mutating plugin
//	interfaces.go   how patches make and recognise objects
//	errors.go       refusals in Kubernetes' words
//
// Limits, which are Kubernetes': an expression may cost 1,000,000 units (about 0.1 s), all of one policy with one binding and
// one parameter 10,000,000, their match conditions 2,500,000. An audit annotation is cut at 10 KiB, 50 failures are told.
//
// Read invocations.go first, then evaluate.go.
//
// Invariants:
//   - No request passes before the policies have been read once.
//   - A policy that fails (it does not compile, its parameters are missing, its cost is too high) refuses, unless its
//     failurePolicy is Ignore.
//   - Policies are compiled once for each generation.
package policy
