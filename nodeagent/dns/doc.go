// Package dns answers the names of a cluster on its nodes: the Kubernetes DNS specification 1.1.0
// (kubernetes/dns docs/specification.md) for what is below the cluster's domain, and the host's own resolvers for the rest.
//
// Every node serves its pods at the cluster DNS address by itself, so no query crosses a network, and none needs a
// pod that answers it.
//
//	query ─▶ server.go ─▶ resolver.go ─┬─▶ zone.go: names below the domain, from informers ─▶ service.go, pod.go, reverse.go
//	                                   └─▶ cache.go ─▶ forward.go: everything else
//
// Invariants:
//   - What the zone answers is computed from the informers for each query and never cached here: a pod that becomes
//     ready has its name at once. Others may keep answers for ttlSeconds, also negative ones.
//   - A name that exists without records of the asked type is answered by NOERROR and no records, not by NXDOMAIN:
//     resolvers that ask for AAAA first give up on NXDOMAIN.
//   - Before the informers have listed, names of the zone get SERVFAIL: "not there" would be a lie that is cached.
//   - Queries for the zone never leave the node.
//
// Limits (docs/limits.md): parallel forwarded queries, TCP connections, entries of the cache, links of a CNAME chain.
//
// Read zone.go first.
package dns
