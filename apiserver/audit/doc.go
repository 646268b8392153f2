// Package audit keeps the record of who asked the API server for what, and what came of it: Kubernetes' audit
// (https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/, audit.k8s.io/v1). A Policy says of each request how much
// is recorded; sinks take the events: a file (file.go), a webhook (webhook.go).
//
//	policy.go     the policy's file, read and checked; rule.go: which requests a rule means
//	record.go     what is gathered about one request, by stages; Annotate
//	auditor.go    a policy and its sinks
//	buffer.go     a sink that nobody waits for
//
// A request that is audited carries a Record in its context. Whatever decides on it, authentication, authorization,
// admission, says so with Annotate; what is not audited costs one look into the context.
//
// Invariants:
//   - An event is encoded once, whatever the number of sinks, as a line of JSON.
//   - Bodies are in events of level Request and above alone. At level Metadata there is nothing of a body, with one
//     exception: the name, namespace, uid and resourceVersion in it.
//   - What a sink cannot take is counted (apiserver_audit_error_total), never silently lost.
//
// Read first: record.go, then auditor.go.
package audit
