// Package policy enforces NetworkPolicies on the pods of a node, with nftables.
//
//	informers ─▶ enforcer.go: which pods, policies and peers changed?
//	                  │        ─▶ binding.go: which policies select this pod?   ─▶ podrules.go
//	                  │        ─▶ policyrules.go: what does this policy let through?  spans.go: address and port ranges
//	                  ▼
//	   package nftables: the difference to what the kernel has, in one transaction
//
// A node reads its own pods, NetworkPolicies, and the addresses of the pods that these name as peers, which a controller looks
// up (internal/policypeers). Policies that select no pod of the node leave nothing on it.
//
// # A packet
//
// Pod 10.244.0.5 of this node is selected by policy shop/db for ingress. A packet to it comes by the hook forward:
//
//	chain forward {
//	  ct original ip saddr vmap @egress4      # who is the client? not bound for egress: go on
//	  goto ingress }
//	chain ingress {
//	  ct reply ip saddr vmap @ingress4        # 10.244.0.5 : goto in4/shop/db-0/…
//	  accept }
//	chain in4/shop/db-0/… {
//	  jump in4/shop/db                        # each policy that selects the pod
//	  drop }
//	chain in4/shop/db {                       # a rule of the policy: peers, and ports
//	  ct direction original ct original ip saddr @peers4/shop/db/… meta l4proto tcp th dport { 5432 } accept
//	  ct direction reply … th sport { 5432 } accept }
//
// So a packet pays for the policies of the two pods that it goes between, and two look-ups if they have none. A rule for
// egress does not accept, it goes to "ingress": both ends have to agree.
//
// # Flows, not packets
//
// A policy is about connections, and allows answers. Instead of letting all packets of established flows through, the rules
// look at the flow that a packet belongs to, in both directions: "ct original saddr" is the client, as it is behind no
// Service's address, and "ct reply saddr" the endpoint, whatever address the client used. So every packet is judged as the
// first one of its flow would be now: a policy that comes cuts flows that are open, in both directions, at once, and one
// that goes lets them live again. Connection tracking is only read. What it does not know, TCP in the middle of a
// connection that it has not seen begin included, is dropped if either end is bound by any policy: which end is the client
// cannot be told.
//
// # What is never judged
//
//   - Traffic between a pod and its own node (hooks input and output): probes always reach the pod, and the pod the DNS of its
//     node. Kubernetes documents this so. Other nodes are peers like any address, by ipBlock alone.
//   - A pod's traffic to itself, also through a Service.
//   - Pods on their node's network: they are the node.
//   - ICMP errors about flows, and IPv6's neighbour discovery. Other ICMP passes where a rule names no ports.
//
// # Invariants
//
//   - A pod is bound before its first container starts: Protect returns when the kernel has its rules. Who gets an address
//     from another pod gets it without that pod's rules.
//   - While policies are not known, because no API server answered since the agent began, new pods are closed: only their
//     node reaches them. Pods that ran before keep the rules that they have.
//   - While rules cannot be written, because nft is missing or the kernel refuses them, a pod that a policy selects does not
//     start; others do. It is tried again, every ten seconds at most, and told (Config.Report).
//   - What is not known to be allowed is not: peers whose slices are not there yet, a pod that has no object.
//   - The end of the agent leaves the rules. They are in a table of Kontiki's own, inet kontiki-policy, replaced as a whole at
//     the start of the next; Remove takes it away. When somebody flushes all rules of the machine it is back at once
//     (nftables.Watcher).
//
// Between pods of one bridge, the kernel's br_netfilter must hand packets to the hook (network.EnableServices); without, such
// traffic is not seen.
//
// Read enforcer.go first, then policyrules.go.
package policy
