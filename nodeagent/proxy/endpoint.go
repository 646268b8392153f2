package proxy

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// endpoint is one address and port behind a port of a Service.
type endpoint struct {
	address netip.AddrPort
	local   bool // on this node
	ready   bool // takes new connections
	serving bool // terminating, but still answering
	zones   []string
	nodes   []string // hints: who should prefer this endpoint
}

// here is the node that the proxy works for.
type here struct {
	node string
	zone string // empty if not known
}

// endpointsOf collects the endpoints of a Service's port from slices of one family, in a fixed order.
func endpointsOf(slicesOfService []*discoveryv1.EndpointSlice, port corev1.ServicePort, isIPv6 bool, at here) []endpoint {
	var all []endpoint
	for _, slice := range slicesOfService {
		if (slice.AddressType == discoveryv1.AddressTypeIPv6) != isIPv6 || slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		number := portIn(slice, port)
		if number == 0 {
			continue
		}
		for _, e := range slice.Endpoints {
			all = appendEndpoint(all, e, number, at)
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int {
		return cmp.Or(a.address.Compare(b.address), cmp.Compare(rank(b), rank(a)))
	})
	// While a slice is split or merged, an endpoint may be in two: the readier one counts.
	return slices.CompactFunc(all, func(a, b endpoint) bool { return a.address == b.address })
}

func rank(e endpoint) int {
	switch {
	case e.ready:
		return 2
	case e.serving:
		return 1
	}
	return 0
}

// portIn finds the number that a slice gives to a port of a Service: they go by name and protocol.
func portIn(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) uint16 {
	for _, p := range slice.Ports {
		if p.Port != nil && ptr.Deref(p.Name, "") == port.Name && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == port.Protocol {
			return uint16(*p.Port)
		}
	}
	return 0
}

func appendEndpoint(all []endpoint, e discoveryv1.Endpoint, port uint16, at here) []endpoint {
	if len(e.Addresses) == 0 {
		return all
	}
	address, err := netip.ParseAddr(e.Addresses[0]) // the others stand for the same endpoint (discovery/v1)
	if err != nil {
		return all
	}
	out := endpoint{
		address: netip.AddrPortFrom(address, port),
		local:   at.node != "" && ptr.Deref(e.NodeName, "") == at.node,
		ready:   ptr.Deref(e.Conditions.Ready, true),
		serving: ptr.Deref(e.Conditions.Serving, ptr.Deref(e.Conditions.Ready, true)) && ptr.Deref(e.Conditions.Terminating, false),
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			out.zones = append(out.zones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			out.nodes = append(out.nodes, n.Name)
		}
	}
	return append(all, out)
}

// usable are the endpoints that get new connections: those that are ready or, when none is, those that terminate but still
// answer (KEP-1669), so that a rolling update of the last pod loses nothing.
func usable(all []endpoint) []endpoint {
	if ready := filter(all, func(e endpoint) bool { return e.ready }); len(ready) > 0 {
		return ready
	}
	return filter(all, func(e endpoint) bool { return e.serving })
}

// near are the usable endpoints that hints assign to this node, or to its zone (KEP-2433, KEP-3015); all of them when the
// hints are incomplete, or assign none to here.
func near(all []endpoint, at here) []endpoint {
	all = usable(all)
	hinted := func(hints func(endpoint) []string, name string) []endpoint {
		if name == "" || slices.ContainsFunc(all, func(e endpoint) bool { return len(hints(e)) == 0 }) {
			return nil
		}
		return filter(all, func(e endpoint) bool { return slices.Contains(hints(e), name) })
	}
	if mine := hinted(func(e endpoint) []string { return e.nodes }, at.node); len(mine) > 0 {
		return mine
	}
	if mine := hinted(func(e endpoint) []string { return e.zones }, at.zone); len(mine) > 0 {
		return mine
	}
	return all
}

// localOf are the usable ones among the endpoints on this node.
func localOf(all []endpoint) []endpoint {
	return usable(filter(all, func(e endpoint) bool { return e.local }))
}

func filter(all []endpoint, keep func(endpoint) bool) (kept []endpoint) {
	for _, e := range all {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}
