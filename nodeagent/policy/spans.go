package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// span is addresses of one family, both ends included.
type span struct{ first, last netip.Addr }

func (s span) String() string {
	if s.first == s.last {
		return s.first.String()
	}
	return s.first.String() + "-" + s.last.String()
}

func spanOf(p netip.Prefix) span {
	p = p.Masked()
	last := p.Addr().AsSlice()
	for bit := p.Bits(); bit < p.Addr().BitLen(); bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last) // as long as it was
	return span{p.Addr(), end}
}

// isEverything says whether the span is all addresses of its family.
func (s span) isEverything() bool { return !s.first.Prev().IsValid() && !s.last.Next().IsValid() }

// spansOf are the addresses of the ipBlocks among peers without their exceptions: in order, none touches another. nftables'
// intervals may not overlap.
func spansOf(peers []networkingv1.NetworkPolicyPeer, isIPv6 bool) []span {
	var all []span
	for _, peer := range peers {
		if peer.IPBlock == nil {
			continue
		}
		prefix, err := netip.ParsePrefix(peer.IPBlock.CIDR)
		if err != nil || prefix.Addr().Is6() != isIPv6 {
			continue
		}
		block := []span{spanOf(prefix)}
		for _, text := range peer.IPBlock.Except {
			if except, err := netip.ParsePrefix(text); err == nil && except.Addr().Is6() == isIPv6 {
				block = without(block, spanOf(except))
			}
		}
		all = append(all, block...)
	}
	return joined(all)
}

// without cuts a span out of others.
func without(all []span, hole span) (left []span) {
	for _, s := range all {
		if s.last.Less(hole.first) || hole.last.Less(s.first) {
			left = append(left, s)
			continue
		}
		if s.first.Less(hole.first) {
			left = append(left, span{s.first, hole.first.Prev()})
		}
		if hole.last.Less(s.last) {
			left = append(left, span{hole.last.Next(), s.last})
		}
	}
	return left
}

// joined makes one of spans that overlap or touch.
func joined(all []span) (out []span) {
	slices.SortFunc(all, func(a, b span) int { return a.first.Compare(b.first) })
	for _, s := range all {
		if n := len(out); n > 0 {
			if next := out[n-1].last.Next(); !next.IsValid() || !next.Less(s.first) {
				if out[n-1].last.Less(s.last) {
					out[n-1].last = s.last
				}
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// portSpan is ports, both ends included.
type portSpan struct{ first, last int32 }

func (p portSpan) String() string {
	if p.first == p.last {
		return fmt.Sprint(p.first)
	}
	return fmt.Sprintf("%d-%d", p.first, p.last)
}

// joinedPorts makes one of spans that overlap or touch.
func joinedPorts(all []portSpan) (out []portSpan) {
	slices.SortFunc(all, func(a, b portSpan) int { return cmp.Compare(a.first, b.first) })
	for _, s := range all {
		if n := len(out); n > 0 && s.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, s.last)
			continue
		}
		out = append(out, s)
	}
	return out
}
