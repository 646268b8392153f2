package registry

import (
	"iter"
	"math/big"
	"net/netip"
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
