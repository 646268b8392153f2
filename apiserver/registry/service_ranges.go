package registry

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

type serviceRangesKey struct{}

// WithServiceRanges returns a context in which Services may also have addresses of ranges beyond the server's own: those
// of ServiceCIDRs that users have added and that are ready.
func WithServiceRanges(ctx context.Context, ranges func(context.Context) []netip.Prefix) context.Context {
	return context.WithValue(ctx, serviceRangesKey{}, ranges)
}

// rangesOf are the ranges of a family in the order in which they are tried: the server's own, then those of users.
func (a serviceAllocator) rangesOf(ctx context.Context, family corev1.IPFamily) []netip.Prefix {
	var out []netip.Prefix
	if own := a.ranges()[family]; own.IsValid() {
		out = append(out, own)
	}
	if more, ok := ctx.Value(serviceRangesKey{}).(func(context.Context) []netip.Prefix); ok {
		for _, cidr := range more(ctx) {
			if familyOf(cidr.Addr()) == family && !slices.Contains(out, cidr) {
				out = append(out, cidr)
			}
		}
	}
	return out
}

// rangeOf is the smallest of the ranges that has ip. Its first and last address belong to nobody.
func rangeOf(ranges []netip.Prefix, ip netip.Addr) (found netip.Prefix, ok bool) {
	for _, cidr := range ranges {
		if cidr.Contains(ip) && (!ok || cidr.Bits() > found.Bits()) {
			found, ok = cidr, true
		}
	}
	return found, ok && ip != found.Addr() && ip != lastAddress(found)
}
