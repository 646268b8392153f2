package registry

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestPodCIDRs(t *testing.T) {
	r := nodes(Options{ClusterCIDR: netip.MustParsePrefix("10.244.0.0/23")}.withDefaults())
	held := map[string]bool{}
	register := func() (*corev1.Node, error) {
		n := &corev1.Node{}
		err := r.Strategy.Allocate(context.Background(), n, nil, func(claim string) bool { return held[claim] })
		for _, claim := range r.Strategy.Claims(n) {
			held[claim] = true
		}
		return n, err
	}
	for _, want := range []string{"10.244.0.0/24", "10.244.1.0/24"} {
		n, err := register()
		require.NoError(t, err)
		require.Equal(t, want, n.Spec.PodCIDR)
		require.Equal(t, []string{want}, n.Spec.PodCIDRs)
	}
	_, err := register()
	require.ErrorContains(t, err, "every /24 of 10.244.0.0/23 is taken")

	own := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.9.0.0/24"}}
	r.Strategy.Default(own)
	require.NoError(t, r.Strategy.Allocate(context.Background(), own, nil, func(string) bool { return false }))
	require.Equal(t, "10.9.0.0/24", own.Spec.PodCIDR)
	require.Equal(t, []string{"/kontiki/claims/podcidr/10.9.0.0/24"}, r.Strategy.Claims(own))
	require.NoError(t, r.Strategy.Allocate(context.Background(), own, own, func(string) bool { return true }), "it is its own")
	err = r.Strategy.Allocate(context.Background(), own, nil, func(string) bool { return true })
	require.ErrorContains(t, err, "provided CIDR is already allocated")

	free := &corev1.Node{}
	require.NoError(t, nodes(Options{}).Strategy.Allocate(context.Background(), free, nil, nil))
	require.Empty(t, free.Spec.PodCIDR, "no cluster CIDR, no pod CIDR")
}

func TestPieces(t *testing.T) {
	var got []string
	for p := range pieces(netip.MustParsePrefix("255.255.255.0/24"), 26) { // up to the end of the family
		got = append(got, p.String())
	}
	require.Equal(t, []string{"255.255.255.0/26", "255.255.255.64/26", "255.255.255.128/26", "255.255.255.192/26"}, got)
	for p := range pieces(netip.MustParsePrefix("10.0.0.0/28"), 24) {
		require.Equal(t, "10.0.0.0/28", p.String(), "a cluster smaller than one piece is the piece")
	}
}
