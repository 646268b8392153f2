package proxy

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// from makes an endpoint of an address and what changes it.
func from(address string, changes ...func(*endpoint)) endpoint {
	e := endpoint{address: netip.MustParseAddrPort(address), ready: true}
	for _, change := range changes {
		change(&e)
	}
	return e
}

func gone(e *endpoint)        { e.ready = false }
func terminating(e *endpoint) { e.ready, e.serving = false, true }
func onThisNode(e *endpoint)  { e.local = true }
func forZone(zone string) func(*endpoint) {
	return func(e *endpoint) { e.zones = append(e.zones, zone) }
}
func forNode(node string) func(*endpoint) {
	return func(e *endpoint) { e.nodes = append(e.nodes, node) }
}

// TestChoice is which endpoints get a node's traffic.
func TestChoice(t *testing.T) {
	at := here{node: "n1", zone: "z1"}
	for name, c := range map[string]struct {
		all         []endpoint
		near, local []string
	}{
		"ready ones": {
			all:  []endpoint{from("10.0.0.1:80"), from("10.0.0.2:80", gone), from("10.0.0.3:80", onThisNode)},
			near: []string{"10.0.0.1:80", "10.0.0.3:80"}, local: []string{"10.0.0.3:80"},
		},
		"those that end, when no other is left": {
			all:  []endpoint{from("10.0.0.1:80", terminating), from("10.0.0.2:80", gone), from("10.0.0.3:80", terminating, onThisNode)},
			near: []string{"10.0.0.1:80", "10.0.0.3:80"}, local: []string{"10.0.0.3:80"},
		},
		"here one that ends, elsewhere one that is ready": {
			all:  []endpoint{from("10.0.0.1:80"), from("10.0.0.3:80", terminating, onThisNode)},
			near: []string{"10.0.0.1:80"}, local: []string{"10.0.0.3:80"},
		},
		"of the zone": {
			all:  []endpoint{from("10.0.0.1:80", forZone("z1")), from("10.0.0.2:80", forZone("z2"))},
			near: []string{"10.0.0.1:80"},
		},
		"none for the zone": {
			all:  []endpoint{from("10.0.0.1:80", forZone("z3")), from("10.0.0.2:80", forZone("z2"))},
			near: []string{"10.0.0.1:80", "10.0.0.2:80"},
		},
		"one without a hint": {
			all:  []endpoint{from("10.0.0.1:80", forZone("z1")), from("10.0.0.2:80")},
			near: []string{"10.0.0.1:80", "10.0.0.2:80"},
		},
		"an unready one without a hint": {
			all:  []endpoint{from("10.0.0.1:80", forZone("z1")), from("10.0.0.2:80", forZone("z2")), from("10.0.0.4:80", gone)},
			near: []string{"10.0.0.1:80"},
		},
		"of the node before those of the zone": {
			all:  []endpoint{from("10.0.0.1:80", forZone("z1"), forNode("n2")), from("10.0.0.2:80", forZone("z1"), forNode("n1"))},
			near: []string{"10.0.0.2:80"},
		},
	} {
		require.Equal(t, c.near, addresses(near(c.all, at)), name)
		require.Equal(t, c.local, addresses(localOf(c.all)), name)
	}
}

func addresses(all []endpoint) (texts []string) {
	for _, e := range all {
		texts = append(texts, e.address.String())
	}
	return texts
}

// TestEndpointsOfSlices reads slices as their API says: by port name and protocol, first addresses, one family.
func TestEndpointsOfSlices(t *testing.T) {
	slice := func(kind discoveryv1.AddressType, port string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{AddressType: kind, Endpoints: endpoints, Ports: []discoveryv1.EndpointPort{
			{Name: &port, Port: ptr.To[int32](8080)}, // the protocol's default is TCP
		}}
	}
	one := discoveryv1.Endpoint{Addresses: []string{"10.0.0.1", "10.0.0.9"}, NodeName: ptr.To("n1")}
	unready := discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}
	all := []*discoveryv1.EndpointSlice{
		slice(discoveryv1.AddressTypeIPv4, "http", unready), slice(discoveryv1.AddressTypeIPv4, "http", one),
		slice(discoveryv1.AddressTypeIPv6, "http", discoveryv1.Endpoint{Addresses: []string{"fd00::1"}}),
		slice(discoveryv1.AddressTypeIPv4, "other", discoveryv1.Endpoint{Addresses: []string{"10.0.0.2"}}),
		slice(discoveryv1.AddressTypeFQDN, "http", discoveryv1.Endpoint{Addresses: []string{"example.org"}}),
		slice(discoveryv1.AddressTypeIPv4, "http", discoveryv1.Endpoint{Addresses: []string{"nonsense"}}, discoveryv1.Endpoint{}),
	}
	port := corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP}
	got := endpointsOf(all, port, false, here{node: "n1"})
	require.Equal(t, []string{"10.0.0.1:8080"}, addresses(got))
	require.True(t, got[0].ready && got[0].local, "the readier of two entries counts")
	require.Equal(t, []string{"[fd00::1]:8080"}, addresses(endpointsOf(all, port, true, here{})))
	port.Protocol = corev1.ProtocolUDP
	require.Empty(t, endpointsOf(all, port, false, here{}))
}
