package policy

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/internal/policypeers"
)

// TestPeersOfAnotherNamespace: who may write EndpointSlices in one namespace adds no peers to the policies of another.
func TestPeersOfAnotherNamespace(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "1"},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
		},
	}
	selection := policypeers.Of(policy)[0]
	in := func(namespace, address string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Labels: policypeers.Labels(policy.UID, selection)},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
		}
	}
	bound := []boundPod{{&corev1.Pod{}, []netip.Addr{netip.MustParseAddr("10.244.0.5")}}}
	rules := rulesOf(policy, []*discoveryv1.EndpointSlice{in("shop", "10.244.0.6"), in("other", "10.244.0.7")}, bound)
	var peers []string
	for e := range rules.Elements {
		peers = append(peers, e.Key)
	}
	require.Equal(t, []string{"10.244.0.6"}, peers)
}
