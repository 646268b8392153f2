package proxy

import (
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/knftables"

	"kontiki/nodeagent/nftables"
)

// masqueradeMark is the bit of a packet's mark that says "hide the source".
const masqueradeMark = "0x4000"

// preroutingChain is the hook whose rules tell that the table is there.
const preroutingChain = "prerouting"

// table is the rules of one family.
type table struct {
	family family
	*nftables.Table
}

func newTable(f family, name string) *table {
	return &table{family: f, Table: nftables.Open(f.family, name, f.begin)}
}

// begin adds what all Services share.
func (f family) begin(tx *knftables.Transaction) {
	tx.Add(&knftables.Table{Comment: ptr.To("Services, by kontiki")})
	word, address := f.word, f.address
	for name, kind := range map[string]string{
		servicesMap: address + " . inet_proto . inet_service : verdict", refusedMap: address + " . inet_proto . inet_service : verdict",
		nodePortsMap: "inet_proto . inet_service : verdict", refusedPorts: "inet_proto . inet_service : verdict",
	} {
		tx.Add(&knftables.Map{Name: name, Type: kind})
	}
	tx.Add(&knftables.Set{Name: hairpinSet, Type: address + " . " + address})

	toNodePort := fmt.Sprintf("fib daddr type local %s daddr != %s meta l4proto . th dport", word, f.loopback)
	nftables.AddChain(tx, "dispatch",
		word+" daddr . meta l4proto . th dport vmap @"+servicesMap,
		toNodePort+" vmap @"+nodePortsMap)
	nftables.AddChain(tx, refuseChain, "meta l4proto tcp reject with tcp reset", "reject")
	nftables.AddChain(tx, "unserved",
		word+" daddr . meta l4proto . th dport vmap @"+refusedMap,
		toNodePort+" vmap @"+refusedPorts,
		// What has become of no endpoint by now is for an address or a port that no Service has.
		fmt.Sprintf("%s daddr %s fib daddr type != local goto %s", word, f.services, refuseChain))
	nftables.AddChain(tx, markChain, "meta mark set meta mark or "+masqueradeMark)

	nftables.AddBase(tx, preroutingChain, knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority, "jump dispatch")
	nftables.AddBase(tx, "output", knftables.NATType, knftables.OutputHook, knftables.DNATPriority, "jump dispatch")
	nftables.AddBase(tx, "postrouting", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority,
		fmt.Sprintf("meta mark and %s != 0 meta mark set meta mark xor %s masquerade fully-random", masqueradeMark, masqueradeMark),
		// A pod that reaches itself would see its own address and answer past the translation (NW-03).
		fmt.Sprintf("ct status dnat %s saddr . %s daddr @%s masquerade fully-random", word, word, hairpinSet))
	for _, hook := range []knftables.BaseChainHook{knftables.InputHook, knftables.OutputHook} {
		nftables.AddBase(tx, "filter-"+string(hook), knftables.FilterType, hook, knftables.FilterPriority, "ct state new jump unserved")
	}
	// A packet that fits no flow would pass untranslated, and the other side would reset a connection that is well
	// (kubernetes/kubernetes#74839).
	nftables.AddBase(tx, "filter-forward", knftables.FilterType, knftables.ForwardHook, knftables.FilterPriority,
		"ct state invalid drop", "ct state new jump unserved")
}
