package controllers

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"pgregory.net/rapid"

	"kontiki/internal/policypeers"
)

// Whatever comes and goes, the slices hold exactly the peers, none holds too many, and one pod is one write.
func TestPeerSlices(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "u"}}
	selection := policypeers.OfIngress("shop", networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}})
	rapid.Check(t, func(t *rapid.T) {
		client := fake.NewClientset().DiscoveryV1().EndpointSlices("shop")
		wanted := map[netip.Addr]bool{}
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			for range rapid.SampledFrom([]int{1, 1, 150}).Draw(t, "changes") {
				n := rapid.IntRange(0, 400).Draw(t, "address")
				address := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
				if wanted[address] = !wanted[address]; !wanted[address] {
					delete(wanted, address)
				}
			}
			list, err := client.List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			before := make([]any, len(list.Items))
			for i := range list.Items {
				before[i] = &list.Items[i]
			}
			plan := newPeerSlices(policy, before)
			group := policypeers.Group{Addresses: slices.SortedFunc(maps.Keys(wanted), netip.Addr.Compare)}
			if len(wanted) > 0 {
				plan.want(selection, &group)
			}
			require.NoError(t, plan.write(t.Context(), client))

			list, err = client.List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			got := map[netip.Addr]bool{}
			after := make([]any, len(list.Items))
			for i := range list.Items {
				slice := &list.Items[i]
				require.LessOrEqual(t, len(slice.Endpoints), maxEndpointsPerSlice)
				require.Equal(t, "u", slice.Labels[policypeers.LabelPolicy])
				for _, a := range policypeers.AddressesIn(slice, false) {
					require.False(t, got[a], "%s is in two", a)
					got[a] = true
				}
				after[i] = slice
			}
			require.Equal(t, wanted, got)
			again := newPeerSlices(policy, after)
			if len(wanted) > 0 {
				again.want(selection, &group)
			}
			require.Empty(t, slices.Concat(again.create, again.update, again.remove), "nothing is written twice")
		}
	})
}

// A pod that comes or goes changes one slice of many.
func TestPeerSlicesChangeAlone(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p.-" + fmt.Sprintf("%060d.", 0), UID: "u"}}
	selection := policypeers.OfIngress("shop", networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}})
	var all []netip.Addr
	for n := range 950 {
		all = append(all, netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}))
	}
	first := newPeerSlices(policy, nil)
	first.want(selection, &policypeers.Group{Addresses: all})
	require.Len(t, first.create, 10)
	for name, next := range map[string][]netip.Addr{"comes": append(slices.Clone(all), netip.MustParseAddr("10.9.9.9")), "goes": all[1:]} {
		plan := newPeerSlices(policy, asObjects(first.create))
		plan.want(selection, &policypeers.Group{Addresses: next})
		require.Len(t, slices.Concat(plan.create, plan.update, plan.remove), 1, name)
	}
}

// An address that somebody has put into a slice, at an endpoint that is a peer's or at one of its own, or in place of a peer, goes.
func TestForeignAddressesGo(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "u"}}
	selection := policypeers.OfIngress("shop", networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}})
	peers := &policypeers.Group{Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}}
	for name, spoil := range map[string]func(*discoveryv1.EndpointSlice){
		"beside a peer": func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{"10.0.0.1", "10.6.6.6"} },
		"alone": func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.6.6.6"}})
		},
		"in place of a peer": func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1", "10.6.6.6"}}, {Addresses: []string{"10.6.6.7"}}}
		},
	} {
		plan := newPeerSlices(policy, nil)
		plan.want(selection, peers)
		require.Len(t, plan.create, 1)
		spoil(plan.create[0])
		next := newPeerSlices(policy, asObjects(plan.create))
		next.want(selection, peers)
		require.Len(t, next.update, 1, name)
		require.Equal(t, peers.Addresses, policypeers.AddressesIn(next.update[0], false), name)
		again := newPeerSlices(policy, asObjects(next.update))
		again.want(selection, peers)
		require.Empty(t, again.update, name)
	}
}

func asObjects(all []*discoveryv1.EndpointSlice) (objects []any) {
	for _, s := range all {
		objects = append(objects, s)
	}
	return objects
}
