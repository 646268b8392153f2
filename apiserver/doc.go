// Package apiserver is the Kubernetes API over HTTP: one generic set of handlers over the table of
// resources in apiserver/registry, kept in apiserver/storage. It is stateless, so any number of
// servers can stand over one store.
//
// A request takes this way; each stage is a file:
//
//	chain.go          the order of the stages
//	recovery.go       a panic is a 500 for that request alone
//	requestid.go      the audit id, which also travels into the raft entry
//	authenticate.go   who asks: front proxy, certificates, tokens (tokenuser.go: the kinds of tokens, accounttokens.go), sockettoken.go; impersonate.go
//	accessconfig.go   who else is known and decides: package authconfig reads the files, frontproxy, oidc and authwebhook know the users
//	audit.go          what is recorded of it: package audit; auditbody.go
//	impersonate.go    as whom
//	route.go          gorilla/mux; resourcepath.go takes the URLs of resources apart
//	target.go         what the URL asks for; how long it may take, how large its body may be
//	authorize.go      may they: the chain of authorizers: nodeauth (nodepods.go: what nodes need), apiserver/rbac, by the roles that policy.go
//	                  follows, webhooks; action.go and accessreview.go: what is asked; escalation.go: nobody grants what they lack
//	inflight.go       how many at a time
//	create.go get.go list.go watchstream.go update.go patch.go apply.go delete.go subresource.go
//	admit.go          should it be so: apiserver/admission; hooks.go policies.go: webhooks and policies of the cluster; kinds.go: in any version
//	write.go          what creating and updating have in common: metadata, strategy (validate.go: validation)
//	deletion.go       the steps of a deletion: grace, finalizers, the end
//	fieldmanager.go   who owns which field; viewowners.go: and which field of a scale
//	negotiate.go decode.go encode.go    media types in and out; protobuf.go cbor.go watchsocket.go
//	errors.go         the only place where an error becomes a Status
//
// Read target.go first, then create.go: every other verb is a variation of it.
//
// Invariants:
//   - Objects that come out of storage are shared and never changed; a write starts from a deep copy.
//   - A handler returns an error or writes the response, never both.
//   - An answer that reports success was preceded by a durable write, except with dryRun.
package apiserver
