// Package discovery tells clients what the API server serves: the documents at /api, /apis and below
// that kubectl, client-go's RESTMapper and controllers read before anything else, in the plain form
// (one document per group version) and in the aggregated form (apidiscovery.k8s.io/v2: one for all),
// and /version.
//
// Everything is derived from the registry.Table, and from what package aggregation knows of other servers, and cached until
// one of them changes. Groups and versions are in the order of their priorities (order.go): the order in which clients look a
// short name up. Read documents.go first, then handler.go.
package discovery
