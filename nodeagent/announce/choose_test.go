package announce

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// TestOwner: every address has one owner, whatever the order; shares are about even; a node that goes moves its own alone.
func TestOwner(t *testing.T) {
	require.Empty(t, owner(netip.MustParseAddr("192.0.2.1"), nil))
	nodes := []string{"node-1", "node-2", "node-3", "node-4"}
	shares := map[string]int{}
	address := netip.MustParseAddr("192.0.2.0")
	for range 1000 {
		address = address.Next()
		first := owner(address, nodes)
		require.Equal(t, first, owner(address, []string{nodes[3], nodes[1], nodes[0], nodes[2]}))
		shares[first]++
		if first != "node-2" {
			require.Equal(t, first, owner(address, []string{nodes[0], nodes[2], nodes[3]}))
		}
	}
	for name, n := range shares {
		require.InDelta(t, 250, n, 60, name)
	}
}

func TestEligible(t *testing.T) {
	s := &corev1.Service{}
	require.Nil(t, eligible(s, nil), "every node")
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	endpoint := func(node string, ready, serving, terminating bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{NodeName: &node, Conditions: discoveryv1.EndpointConditions{
			Ready: ptr.To(ready), Serving: ptr.To(serving), Terminating: ptr.To(terminating),
		}}
	}
	slices := func(endpoints ...discoveryv1.Endpoint) string {
		return fmt.Sprint(eligible(s, []*discoveryv1.EndpointSlice{{Endpoints: endpoints}}))
	}
	require.Equal(t, "map[]", slices())
	require.Equal(t, "map[a:true]", slices(endpoint("a", true, true, false), endpoint("b", false, true, true), endpoint("c", false, false, false)))
	require.Equal(t, "map[b:true]", slices(endpoint("b", false, true, true), endpoint("c", false, false, true)))
	require.Equal(t, "map[a:true]", slices(discoveryv1.Endpoint{NodeName: ptr.To("a")}, discoveryv1.Endpoint{}), "unknown is ready")
}
