package policy

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"pgregory.net/rapid"
)

// Spans hold an address if and only if a block does and none of its exceptions; they are in order, with room between.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isIPv6 := rapid.Bool().Draw(t, "IPv6")
		address := func(n uint8) netip.Addr {
			a, b := []byte{0, 255}[n/128], []byte{0, 255}[n%128/64] // both ends of the family's addresses
			low := n % 64
			if isIPv6 {
				return netip.AddrFrom16([16]byte{a, a, a, a, a, a, a, a, a, a, a, a, a, a, b, b&^63 | low})
			}
			return netip.AddrFrom4([4]byte{a, a, b, b&^63 | low})
		}
		prefix := func(name string) netip.Prefix {
			a := address(rapid.Byte().Draw(t, name))
			return netip.PrefixFrom(a, a.BitLen()-rapid.SampledFrom([]int{0, 1, 2, 3, 6, 8, 16, a.BitLen()}).Draw(t, name+" bits")).Masked()
		}
		var peers []networkingv1.NetworkPolicyPeer
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			block := &networkingv1.IPBlock{CIDR: prefix("block").String()}
			for range rapid.IntRange(0, 3).Draw(t, "exceptions") {
				block.Except = append(block.Except, prefix("except").String())
			}
			peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: block})
		}
		spans := spansOf(peers, isIPv6)
		require.Empty(t, spansOf(peers, !isIPv6))
		for i, s := range spans {
			require.False(t, s.last.Less(s.first))
			if i > 0 {
				require.True(t, spans[i-1].last.Next().Less(s.first), "%v", spans)
			}
		}
		for n := range 256 {
			a := address(uint8(n))
			want := false
			for _, p := range peers {
				in := netip.MustParsePrefix(p.IPBlock.CIDR).Contains(a)
				for _, e := range p.IPBlock.Except {
					in = in && !netip.MustParsePrefix(e).Contains(a)
				}
				want = want || in
			}
			got := false
			for _, s := range spans {
				got = got || !a.Less(s.first) && !s.last.Less(a)
			}
			require.Equal(t, want, got, "%s in %v", a, spans)
		}
	})
}

func TestJoinedPorts(t *testing.T) {
	require.Equal(t, []portSpan{{1, 5}, {7, 90}}, joinedPorts([]portSpan{{80, 90}, {3, 5}, {1, 2}, {7, 80}, {8, 9}}))
	require.Equal(t, "80 8000-8001", portSpan{80, 80}.String()+" "+portSpan{8000, 8001}.String())
}
