// Package policypeers is what the controller and the nodes agree on about the pods that NetworkPolicies name as peers.
//
// A node may not read other nodes' pods, and needs no more of them than their addresses. So a controller looks up whom each
// rule selects, and writes it into EndpointSlices in the policy's namespace, owned by the policy:
//
//	labels:
//	  endpointslice.kubernetes.io/managed-by: networkpolicy-controller.kontiki.io
//	  kontiki.io/network-policy-uid: <uid of the policy>
//	  kontiki.io/network-policy-peers: <Selection.Key: a digest of what the rule selects>
//	addressType: IPv4
//	ports: the numbers that these pods have for the port names of an egress rule
//	endpoints: addresses of pods, and nothing else of them
//
// They have no kubernetes.io/service-name, so no proxy and no DNS server takes them for a Service's. A node computes the
// same keys from the policy that it reads. When a rule changes its key does too, so a node never mixes a rule with the
// peers of another version: until the controller has written the new ones, the rule lets nobody in.
//
// Whoever may write EndpointSlices in a namespace can add to the peers of the namespace's policies, as they can add to the
// endpoints of its Services. Slices in other namespaces add nothing, whatever their labels say.
//
// Read selection.go first.
package policypeers
