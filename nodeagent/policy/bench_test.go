package policy

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/netnstest"
	"kontiki/internal/policypeers"
)

// BenchmarkChange is a node with 100 pods and 1,000 policies of 10 peers each, all of which bind pods of it: the time from a
// change to the rules in the kernel.
func BenchmarkChange(b *testing.B) {
	space := netnstest.New(b, "node", "nft")
	e := newEnforcer(Config{Log: slog.New(slog.DiscardHandler)}, openTable())
	byUIDToo := cache.Indexers{byUID: indexByUID, cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	e.pods, e.policies = cache.NewIndexer(cache.MetaNamespaceKeyFunc, byUIDToo), cache.NewIndexer(cache.MetaNamespaceKeyFunc, byUIDToo)
	e.slices = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{policypeers.ByPolicy: policypeers.IndexByPolicy})
	for i := range 100 {
		uid := types.UID(fmt.Sprint("pod-", i))
		require.NoError(b, e.pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: string(uid), UID: uid, Labels: map[string]string{"app": fmt.Sprint(i)},
		}}))
		e.addresses.give(uid, []netip.Addr{netip.AddrFrom4([4]byte{10, 244, 0, byte(10 + i)})})
	}
	for i := range 1000 {
		require.NoError(b, e.policies.Add(benchPolicy(i)))
		require.NoError(b, e.slices.Add(benchPeers(i, 0)))
	}
	sync := func(note func(*batch)) {
		changes := newBatch()
		note(changes)
		var err error
		space.In(func() { err = e.sync(b.Context(), changes) })
		require.NoError(b, err)
	}
	sync(func(changes *batch) { changes.all = true })

	b.Run("peer", func(b *testing.B) {
		for version := 1; b.Loop(); version++ {
			require.NoError(b, e.slices.Update(benchPeers(500, version)))
			sync(func(changes *batch) { changes.peers["policy-500"] = true })
		}
	})
	b.Run("policy", func(b *testing.B) {
		for version := int64(1); b.Loop(); version++ {
			p := benchPolicy(500)
			p.Generation, p.Spec.PolicyTypes = version, p.Spec.PolicyTypes[:1+version%2]
			require.NoError(b, e.policies.Update(p))
			sync(func(changes *batch) { changes.policies["shop/policy-500"] = true })
		}
	})
	b.Run("pod", func(b *testing.B) {
		for version := 1; b.Loop(); version++ {
			e.addresses.give("pod-50", []netip.Addr{netip.AddrFrom4([4]byte{10, 244, 9, byte(version)})})
			sync(func(changes *batch) { changes.pods["pod-50"] = true })
		}
	})
	b.Run("everything", func(b *testing.B) {
		for b.Loop() {
			space.In(func() { require.NoError(b, e.table.Remove(b.Context())) })
			sync(func(changes *batch) { changes.all = true })
		}
	})
}

// benchPolicy binds one pod of the hundred in both directions.
func benchPolicy(i int) *networkingv1.NetworkPolicy {
	peers := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"peer-of": fmt.Sprint(i)}}}}
	name := fmt.Sprint("policy-", i)
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i % 100)}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: somePorts[1]}},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: peers}},
		},
	}
}

// benchPeers are the ten peers of a policy, one of which has a new address in each version.
func benchPeers(i, version int) *discoveryv1.EndpointSlice {
	policy := benchPolicy(i)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: policy.Name, Labels: policypeers.Labels(policy.UID, policypeers.Of(policy)[0])},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for n := range 10 {
		address := netip.AddrFrom4([4]byte{10, 245, byte(i / 25), byte(i%25*10 + n)})
		if n == 0 {
			address = netip.AddrFrom4([4]byte{10, 246, byte(version >> 8), byte(version)})
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address.String()}})
	}
	return slice
}
