package registry

import (
	"iter"
	"math/big"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pieces yields the sub-prefixes of whole that are bits long, lowest first. A whole that is smaller
// than one piece is yielded as it is.
func pieces(whole netip.Prefix, bits int) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		if whole.Bits() >= bits {
			yield(whole)
			return
		}
		step := new(big.Int).Lsh(big.NewInt(1), uint(whole.Addr().BitLen()-bits))
		for addr := whole.Addr(); whole.Contains(addr); addr = addressAfter(addr, step) {
			if !yield(netip.PrefixFrom(addr, bits)) {
				return
			}
		}
	}
}

// addressAfter returns addr+distance, or the invalid address past the end of the family.
func addressAfter(addr netip.Addr, distance *big.Int) netip.Addr {
	size := addr.BitLen() / 8
	sum := new(big.Int).Add(new(big.Int).SetBytes(addr.AsSlice()), distance)
	if sum.Sign() < 0 || sum.BitLen() > addr.BitLen() {
		return netip.Addr{}
	}
	next, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, size)))
	return next
}

// endpointIP: traffic must not be sent to the node itself by way of an endpoint.
func endpointIP(path *field.Path, text string) field.ErrorList {
	if faults := validation.IsValidIP(path, text); len(faults) > 0 {
		return faults
	}
	ip := netip.MustParseAddr(text)
	why := ""
	switch {
	case ip.IsUnspecified():
		why = "may not be unspecified (0.0.0.0 or ::)"
	case ip.IsLoopback():
		why = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
	case ip.IsLinkLocalUnicast():
		why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
	case ip.IsLinkLocalMulticast():
		why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(path, text, why)}
}
