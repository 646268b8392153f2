// Package aggregation makes the API server the front of other API servers, which its users run behind Services: it acts on the
// objects APIService of apiregistration.k8s.io (https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/).
//
//	aggregator.go   the APIServices in use, by group version
//	backend.go      the server behind a Service: connections with the front proxy's certificate
//	proxy.go        a client's request goes to it, and its answer back, streams and upgrades included; headers.go: who asks
//	check.go        is it there: one question to it; watch.go: when it is asked; condition.go: what is then said of it
//	resources.go    what it says it has, for discovery
//	openapi.go      and its OpenAPI documents
//	local.go        the APIServices of what this server has itself
//
// Every API server asks for itself whether another server is there, since only it may have the way, and goes by what it finds:
// it sends requests on if it or the object's condition Available says that it is worth it. The condition is written by one of
// the API servers at a time (Config.Report leaves that to its owner), so that servers of different opinions do not fight over it.
//
// Limits: an answer about what a server has is at most 4 MiB, its OpenAPI documents 16 MiB; a check takes at most 5 seconds, and as
// many as 32 run at a time; a backend has at most 1,000 requests at a time, streams included; a request that is no stream
// has the time of any other request, and a stream a minute until it begins. Redirects are not passed on.
//
// Read aggregator.go first, then proxy.go and check.go.
//
// Invariants:
//   - Whoever calls has authenticated and authorized the user. What a client says about who it is never reaches a backend.
//   - apiregistration.k8s.io is this server's own, whatever an APIService says: there is a way back from any.
//   - A backend that is down, slow or lies does no harm to any other group version.
//
// Not yet: group versions of servers that have no OpenAPI v3 are missing in /openapi/v3 (they are in /openapi/v2).
package aggregation
