package announce

import (
	"hash/fnv"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// owner is the one of the candidates that announces an address, "" if there are none: that with the highest hash of both
// names (rendezvous hashing), so that every node finds the same one, and few addresses move when one joins.
func owner(address netip.Addr, candidates []string) (best string) {
	var highest uint64
	for _, c := range candidates {
		if h := weight(address, c); best == "" || h > highest || h == highest && c < best {
			best, highest = c, h
		}
	}
	return best
}

func weight(address netip.Addr, node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(address.AsSlice())
	_, _ = h.Write([]byte(node))
	x := h.Sum64()
	// FNV leaves similar names with similar high bits; this spreads them (the finalizer of MurmurHash3, public domain).
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// eligible says which nodes may announce a Service's addresses as far as its endpoints are concerned; nil: every node.
func eligible(s *corev1.Service, slices []*discoveryv1.EndpointSlice) map[string]bool {
	if s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return nil
	}
	ready, terminating := map[string]bool{}, map[string]bool{}
	for _, slice := range slices {
		for _, e := range slice.Endpoints {
			node := ptr.Deref(e.NodeName, "")
			switch {
			case node == "":
			case ptr.Deref(e.Conditions.Ready, true):
				ready[node] = true
			case ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false):
				terminating[node] = true
			}
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return terminating // as the Service rules have it: better than nobody
}
