// Package apiserver is the Kubernetes API over HTTP: one generic set of handlers over the table of
// resources in apiserver/registry, kept in apiserver/storage. It is stateless, so any number of
// servers can stand over one store.
//
// # The way of a request
//
// Each stage is a file:
//
//	server.go      configuration, life and listeners; chain.go: the order of the stages; stackroom.go
//	connection.go  what is kept for a connection; body.go: bodies are read before anybody takes a seat; bodytime.go
//	recovery.go    a panic is a 500 for that request alone
//	requestid.go   the audit id, which also travels into the raft entry; requestlog.go: and into the log
//	warnings.go    what the client is told beside the answer; deprecation.go
//	authenticate.go who asks: certificates; tokenuser.go: the kinds of tokens (accounttokens.go, bootstraptoken.go, sockettoken.go);
//	               accessconfig.go, accessfiles.go: who else is known and decides (packages authconfig, oidc, authwebhook, frontproxy)
//	audit.go       what is recorded of it (package audit); auditbody.go: and of its bodies
//	impersonate.go as whom
//	route.go       gorilla/mux; resourcepath.go takes the URLs of resources apart
//	target.go      what the URL asks for; how long it may take, how large its body may be
//	authorize.go   may they: the chain of authorizers; nodepods.go: what nodes need (package nodeauth); policy.go: the roles (package rbac);
//	               action.go, accessreview.go: what is asked; escalation.go: nobody grants what they lack
//	inflight.go    how many at a time, and who first: flows.go (package flowcontrol)
//
// then one of
//
//	create.go get.go list.go update.go patch.go apply.go delete.go deletecollection.go     the verbs; strategicpatch.go
//	watchstream.go watches; watchsocket.go, watchgzip.go: in other wrappings
//	subresource.go parts, views and commands; evict.go
//	answers.go     questions, whose objects are not stored
//	connect.go     streams to nodes and pods (package nodeproxy)
//	history.go     the revisions of an object
//	aggregated.go  what another server has (package aggregation)
//
// with
//
//	options.go     what the query says
//	negotiate.go decode.go encode.go respond.go    media types in and out; protobuf.go, cbor.go, manifest.go, tables.go
//	write.go       what creating and updating have in common: metadata, strategy; validate.go, names.go, parts.go
//	admit.go       should it be so (package admission); hooks.go, policies.go, kinds.go: webhooks and policies of the cluster;
//	               admitconnect.go: streams; beside.go: what is written together with the object
//	deletion.go    the steps of a deletion: grace, finalizers, the end
//	package ownership    who owns which field
//	arrival.go     how new the store is, asked once for many requests
//	errors.go      the only place where an error becomes a Status; confidential.go: what no message quotes
//	answertime.go  clients that do not read
//
// # What a server does by itself
//
//	bootstrap.go   objects that every cluster has: roles, flows, kubernetesservice.go, dnsservice.go, servicecidr.go, clientca.go
//	serverlease.go serverendpoints.go    its place among the servers
//	follow.go      keeping itself as objects of the cluster say
//	definitions.go definitionwork.go     custom resources (package customresources); apiservices.go: aggregated ones
//	health.go metrics.go                 what it says of itself; storecheck.go
//
// Read target.go first, then create.go: every other verb is a variation of it.
//
// Invariants:
//   - Objects that come out of storage are shared and never changed; a write starts from a deep copy.
//   - A handler returns an error or writes the response, never both.
//   - An answer that reports success was preceded by a durable write, except with dryRun.
package apiserver
