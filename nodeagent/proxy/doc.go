// Package proxy makes Services reachable on a node: nftables rules that turn the addresses and ports of Services into those
// of their endpoints, in the kernel.
//
//	informers ─▶ proxy.go: which Services changed? ─▶ frontend.go: what are their addresses and ports?
//	                     │                           ─▶ endpoint.go: which endpoints get their traffic here?
//	                     │                           ─▶ ruleset.go: which chains and map elements say so?
//	                     ▼
//	            table.go: the difference to what the kernel has, in one transaction
//	            conntrack.go: UDP flows to endpoints that are gone      healthcheck.go: health check node ports
//
// # A packet
//
// A pod sends to 10.96.0.20:80, the cluster IP of Service shop/web. In prerouting, the map "services" has
//
//	10.96.0.20 . tcp . 80 : goto cluster/shop/web/tcp/80
//
// and that chain, of three endpoints,
//
//	meta l4proto tcp dnat ip addr . port to numgen random mod 3 map { 0 : 10.244.0.5 . 8080, 1 : 10.244.1.7 . 8080, 2 : 10.244.2.4 . 8080 }
//
// Only the first packet of a flow gets there: connection tracking remembers what became of it, and undoes it in answers.
// So a change of rules, also the whole table anew at a start of the agent, leaves flows that are open alone.
//
// # Invariants
//
//   - The kernel has the rules of one moment: a change is one nftables transaction, also of many Services at once.
//   - What Kontiki writes is in tables of its own (Config.Table, families ip and ip6), and only there.
//   - Rules follow from Services, EndpointSlices and the own Node alone; nothing is remembered over a restart but what the
//     kernel has. Session affinity starts anew with the agent.
//   - Where two Services claim an external IP and port, the one that is first by namespace and name has it.
//
// Services of other proxies (label service.kubernetes.io/service-proxy-name), headless ones, those that the label
// service.kubernetes.io/headless makes so, and those of type ExternalName have no rules; nor count slices with these labels.
//
// Read ruleset.go first.
package proxy
