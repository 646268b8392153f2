package proxy

import (
	"net/netip"

	"sigs.k8s.io/knftables"
)

// family is one of the two IP families: each has a table of its own.
type family struct {
	family   knftables.Family
	isIPv6   bool
	word     string       // of nftables' expressions
	address  string       // nftables' type of an address
	loopback netip.Prefix // where node ports are not served
	pods     netip.Prefix // the cluster's pods; not valid: not known
	services netip.Prefix // the cluster IPs; not valid: the cluster has none of the family
}

// families returns those of the service ranges.
func families(services, pods []netip.Prefix) (all []family) {
	for _, prefix := range services {
		f := family{
			family: knftables.IPv4Family, word: "ip", address: "ipv4_addr",
			loopback: netip.MustParsePrefix("127.0.0.0/8"), services: prefix.Masked(),
		}
		if prefix.Addr().Is6() {
			f = family{
				family: knftables.IPv6Family, isIPv6: true, word: "ip6", address: "ipv6_addr",
				loopback: netip.MustParsePrefix("::1/128"), services: prefix.Masked(),
			}
		}
		for _, p := range pods {
			if p.Addr().Is6() == f.isIPv6 {
				f.pods = p.Masked()
			}
		}
		all = append(all, f)
	}
	return all
}
