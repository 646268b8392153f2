// Package customresources makes rows of the registry out of CustomResourceDefinitions, so that custom resources take
// the same way through the server as built-in kinds. What schemas mean is left to k8s.io/apiextensions-apiserver:
// structural schemas, pruning, defaulting, validation, list types, CEL rules and ratcheting are its packages.
//
//	rows.go        a definition becomes a row for each version that is served, and one that is stored
//	schema.go      what is compiled from the schema of a version, when it is first needed
//	coerce.go      pruning and defaulting: of every body, and of every object read
//	validate.go    OpenAPI, embedded metadata, list types, CEL; ratcheting on updates
//	status.go      the status subresource
//	scale.go       the scale subresource
//	columns.go     printer columns
//	conversion.go  between versions; webhook.go asks somebody outside, review.go reads what they say
//	model.go       the schema as OpenAPI documents show it, and as server-side apply merges by it
//
// Who decides. Three servers run without a leader, and any of them may be asked first. So nothing about a definition is
// decided by the server that happens to look:
//
//   - Names are claims (registry/definitionnames.go): the write that asks for them takes them, in its own transaction.
//     NamesAccepted and Established are in the answer to the create already; there is no time at which a definition
//     waits to be installed.
//   - Every server follows the definitions and makes the same rows of them (apiserver/definitions.go). One that is
//     asked for a resource it does not know first catches up with the store, and only then says 404. So whoever has
//     seen a definition established finds its resource on all servers.
//   - The end of a definition is the same work on each server, and idempotent: instances are deleted, and when none is
//     left the finalizer goes, on condition that nobody has changed the definition meanwhile.
//
// Invariants:
//   - A row never changes; a definition that changes has new rows. Nothing is kept of the old ones once they have left
//     the table and the requests that found them are over.
//   - What is compiled for a definition is compiled when somebody first uses it: a definition without users costs the
//     bytes of its stored form.
//
// Read rows.go first.
package customresources
