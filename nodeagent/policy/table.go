package policy

import (
	"net/netip"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/knftables"

	"kontiki/nodeagent/nftables"
)

// tableName is that of the table that the package owns, of family inet.
const tableName = "kontiki-policy"

// Chains that all pods share.
const (
	forwardChain   = "forward" // the hook
	ingressChain   = "ingress"
	closedChain    = "closed"
	untrackedChain = "untracked"
)

// family is what differs between the IP families in names and rules.
type family struct {
	suffix  string // of names of sets, maps and chains
	word    string // of nftables' expressions
	address string // nftables' type of an address
	isIPv6  bool
}

var (
	ipv4 = family{suffix: "4", word: "ip", address: "ipv4_addr"}
	ipv6 = family{suffix: "6", word: "ip6", address: "ipv6_addr", isIPv6: true}
)

func familyOf(address netip.Addr) family {
	if address.Is6() {
		return ipv6
	}
	return ipv4
}

// isolatedSet are the addresses of pods that any policy binds.
func (f family) isolatedSet() string { return "isolated" + f.suffix }

// selfSet are their flows to themselves.
func (f family) selfSet() string { return "self" + f.suffix }

// client and server are the ends of the flow that a packet belongs to.
func (f family) client() string { return "ct original " + f.word + " saddr" }
func (f family) server() string { return "ct reply " + f.word + " saddr" }

// direction is what a policy can be about.
type direction struct {
	bound   string // the map of pods that are bound, without the family's suffix
	chain   string // how chains begin
	allowed string // what becomes of a flow that a rule lets through
}

var (
	ingress = direction{bound: "ingress", chain: "in", allowed: "accept"}
	egress  = direction{bound: "egress", chain: "out", allowed: "goto " + ingressChain}
)

// boundMap is the map of addresses of pods that policies bind in this direction, each with the pod's chain.
func (d direction) boundMap(f family) string { return d.bound + f.suffix }

// writeBase adds what all pods share. It may be added to a table that has it.
func writeBase(tx *knftables.Transaction) {
	tx.Add(&knftables.Table{Comment: ptr.To("NetworkPolicies, by kontiki")})
	for _, f := range []family{ipv4, ipv6} {
		tx.Add(&knftables.Map{Name: ingress.boundMap(f), Type: f.address + " : verdict"})
		tx.Add(&knftables.Map{Name: egress.boundMap(f), Type: f.address + " : verdict"})
		tx.Add(&knftables.Set{Name: f.isolatedSet(), Type: f.address})
		tx.Add(&knftables.Set{Name: f.selfSet(), Type: f.address + " . " + f.address})
	}
	chain := func(name string, rules ...string) {
		tx.Add(&knftables.Chain{Name: name})
		tx.Flush(&knftables.Chain{Name: name})
		nftables.AddRules(tx, name, rules...)
	}
	chain(closedChain, "drop")
	chain(untrackedChain,
		"ip saddr @isolated4 drop", "ip daddr @isolated4 drop",
		"ip6 saddr @isolated6 drop", "ip6 daddr @isolated6 drop",
		"accept")
	chain(ingressChain, "ct reply ip saddr vmap @ingress4", "ct reply ip6 saddr vmap @ingress6", "accept")

	tx.Add(&knftables.Chain{
		Name: forwardChain, Type: ptr.To(knftables.FilterType), Hook: ptr.To(knftables.ForwardHook), Priority: ptr.To(knftables.FilterPriority),
	})
	chain(forwardChain,
		// Neighbour discovery between pods of one bridge (RFC 4861); it has no flows.
		"icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert, nd-redirect, "+
			"mld-listener-query, mld-listener-report, mld-listener-done, mld2-listener-report } accept",
		"ct state related meta l4proto { icmp, ipv6-icmp } accept",
		"ct state { invalid, untracked } goto "+untrackedChain,
		"ct state new tcp flags & (fin | syn | rst | ack) != syn goto "+untrackedChain,
		"ct original ip saddr . ct reply ip saddr @self4 accept",
		"ct original ip6 saddr . ct reply ip6 saddr @self6 accept",
		"ct original ip saddr vmap @egress4",
		"ct original ip6 saddr vmap @egress6",
		"goto "+ingressChain)
}
