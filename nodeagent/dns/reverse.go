package dns

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"k8s.io/utils/ptr"
)

// reverse answers which name an address has: the Service's, or that of an endpoint with a host name. known is false
// for addresses that the cluster says nothing about: others may.
func (z *zone) reverse(q question) (a answer, known bool) {
	address, ok := addressOf(q.name)
	if !ok {
		return answer{}, false
	}
	names := z.namesOf(address)
	if len(names) == 0 {
		return answer{}, false
	}
	a.exists = true
	for _, name := range names {
		if q.kind == dns.TypePTR {
			a.records = append(a.records, &dns.PTR{Hdr: q.header(dns.TypePTR), Ptr: name})
		}
	}
	return a, true
}

func (z *zone) namesOf(address netip.Addr) (names []string) {
	for _, s := range z.cluster.servicesAt(address) {
		names = append(names, z.hostOf(s))
	}
	for _, slice := range z.cluster.slicesAt(address) {
		s := z.cluster.service(slice.Namespace, slice.Labels["kubernetes.io/service-name"])
		if s == nil || !isHeadless(s) {
			continue
		}
		for _, e := range slice.Endpoints {
			named := ptr.Deref(e.Hostname, "") != "" && ptr.Deref(e.Conditions.Ready, true)
			if named && slices.Contains(canonical(e.Addresses), address.String()) {
				names = append(names, hostnameOf(e, "")+"."+z.hostOf(s))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addressOf reads the address from a name below in-addr.arpa or ip6.arpa (RFC 1035 section 3.5, RFC 3596 section 2.5).
func addressOf(name string) (netip.Addr, bool) {
	if rest, ok := strings.CutSuffix(name, ".in-addr.arpa."); ok {
		labels := strings.Split(rest, ".")
		slices.Reverse(labels)
		address, err := netip.ParseAddr(strings.Join(labels, "."))
		return address, err == nil && address.Is4()
	}
	rest, ok := strings.CutSuffix(name, ".ip6.arpa.")
	if !ok {
		return netip.Addr{}, false
	}
	labels := strings.Split(rest, ".")
	slices.Reverse(labels)
	digits := strings.Join(labels, "")
	if len(labels) != 32 || len(digits) != 32 {
		return netip.Addr{}, false
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return netip.Addr{}, false
	}
	address, ok := netip.AddrFromSlice(raw)
	return address, ok
}
