// Package audit keeps the record of who asked the API server for what, and what came of it: Kubernetes' audit
// (https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/, audit.k8s.io/v1). A policy says of each request how much
// is recorded; sinks take the events.
//
// A request that is audited carries a Record in its context. Whatever decides on it, authentication, authorization,
// admission, says so with Annotate; what is not audited costs one look into the context.
//
// Read first: record.go.
package audit
