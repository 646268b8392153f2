package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/knftables"
)

// maxAffinity bounds the clients that one endpoint's affinity remembers; more are spread without it.
const maxAffinity = 65536

// masqueradeMark is the bit of a packet's mark that says "hide the source".
const masqueradeMark = "0x4000"

// table is what the kernel has of one family. It is not safe for concurrent use.
type table struct {
	family family
	nft    knftables.Interface
	known  *ruleset // what the kernel has; nil: unknown, write all
}

// newTable opens a family's table. The error wraps ErrNoNFTables.
func newTable(f family, name string) (*table, error) {
	nft, err := knftables.New(f.family, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoNFTables, err)
	}
	return &table{family: f, nft: nft}, nil
}

// apply makes the kernel have what is wanted, in one transaction. After an error nothing has changed, and the next apply
// writes everything.
func (t *table) apply(ctx context.Context, wanted *ruleset) error {
	tx, known := t.nft.NewTransaction(), t.known
	if known == nil {
		t.begin(tx)
		known = newRuleset()
	}
	difference(tx, known, wanted, t.family)
	if tx.NumOperations() == 0 {
		return nil
	}
	if err := t.nft.Run(ctx, tx); err != nil {
		t.known = nil
		return fmt.Errorf("proxy: nftables, %s: %w", t.family.word, err)
	}
	t.known = wanted
	return nil
}

// remove takes the table away.
func (t *table) remove(ctx context.Context) error {
	tx := t.nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	return t.nft.Run(ctx, tx)
}

// begin replaces whatever the table held by what all Services share.
func (t *table) begin(tx *knftables.Transaction) {
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{Comment: ptr.To("Services, by kontiki")})
	word, address := t.family.word, t.family.address
	for name, kind := range map[string]string{
		servicesMap: address + " . inet_proto . inet_service : verdict", refusedMap: address + " . inet_proto . inet_service : verdict",
		nodePortsMap: "inet_proto . inet_service : verdict", refusedPorts: "inet_proto . inet_service : verdict",
	} {
		tx.Add(&knftables.Map{Name: name, Type: kind})
	}
	tx.Add(&knftables.Set{Name: hairpinSet, Type: address + " . " + address})

	toNodePort := fmt.Sprintf("fib daddr type local %s daddr != %s meta l4proto . th dport", word, t.family.loopback)
	addChain(tx, "dispatch",
		word+" daddr . meta l4proto . th dport vmap @"+servicesMap,
		toNodePort+" vmap @"+nodePortsMap)
	addChain(tx, refuseChain, "meta l4proto tcp reject with tcp reset", "reject")
	addChain(tx, "unserved",
		word+" daddr . meta l4proto . th dport vmap @"+refusedMap,
		toNodePort+" vmap @"+refusedPorts,
		// What has become of no endpoint by now is for an address or a port that no Service has.
		fmt.Sprintf("%s daddr %s fib daddr type != local goto %s", word, t.family.services, refuseChain))
	addChain(tx, markChain, "meta mark set meta mark or "+masqueradeMark)

	addBase(tx, "prerouting", knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority, "jump dispatch")
	addBase(tx, "output", knftables.NATType, knftables.OutputHook, knftables.DNATPriority, "jump dispatch")
	addBase(tx, "postrouting", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority,
		fmt.Sprintf("meta mark and %s != 0 meta mark set meta mark xor %s masquerade fully-random", masqueradeMark, masqueradeMark),
		// A pod that reaches itself would see its own address and answer past the translation (NW-03).
		fmt.Sprintf("ct status dnat %s saddr . %s daddr @%s masquerade fully-random", word, word, hairpinSet))
	for _, hook := range []knftables.BaseChainHook{knftables.InputHook, knftables.ForwardHook, knftables.OutputHook} {
		addBase(tx, "filter-"+string(hook), knftables.FilterType, hook, knftables.FilterPriority, "ct state new jump unserved")
	}
}

func addBase(tx *knftables.Transaction, name string, kind knftables.BaseChainType, hook knftables.BaseChainHook, priority knftables.BaseChainPriority, rules ...string) {
	tx.Add(&knftables.Chain{Name: name, Type: &kind, Hook: &hook, Priority: &priority})
	addRules(tx, name, rules)
}

func addChain(tx *knftables.Transaction, name string, rules ...string) {
	tx.Add(&knftables.Chain{Name: name})
	addRules(tx, name, rules)
}

func addRules(tx *knftables.Transaction, chain string, rules []string) {
	for _, rule := range rules {
		tx.Add(&knftables.Rule{Chain: chain, Rule: rule})
	}
}

// difference writes the steps from known to wanted, in the order that nftables demands: nothing refers to what is not there
// yet, and nothing goes that is still referred to.
func difference(tx *knftables.Transaction, known, wanted *ruleset, f family) {
	for _, e := range removed(known.elements, wanted.elements, func(a, b string) bool { return a == b }) {
		tx.Delete(asElement(e, known.elements[e]))
	}
	for _, name := range removed(wanted.sets, known.sets, nil) { // the new ones
		timeout, size := wanted.sets[name], uint64(maxAffinity)
		tx.Add(&knftables.Set{
			Name: name, Type: f.address, Flags: []knftables.SetFlag{knftables.DynamicFlag, knftables.TimeoutFlag},
			Timeout: ptr.To(max(timeout, time.Second)), Size: &size,
		})
	}
	changed := removed(wanted.chains, known.chains, slices.Equal[[]string]) // new ones, too
	for _, name := range changed {
		tx.Add(&knftables.Chain{Name: name})
	}
	gone := removed(known.chains, wanted.chains, nil)
	for _, name := range slices.Concat(changed, gone) {
		if _, was := known.chains[name]; was {
			tx.Flush(&knftables.Chain{Name: name})
		}
	}
	for _, name := range changed {
		addRules(tx, name, wanted.chains[name])
	}
	for _, e := range removed(wanted.elements, known.elements, func(a, b string) bool { return a == b }) {
		tx.Add(asElement(e, wanted.elements[e]))
	}
	for _, name := range gone {
		tx.Delete(&knftables.Chain{Name: name})
	}
	for _, name := range removed(known.sets, wanted.sets, nil) {
		tx.Delete(&knftables.Set{Name: name})
	}
}

// removed lists, in order, the keys of a that b has not or, with equal, has with another value.
func removed[K interface {
	comparable
}, V any](a, b map[K]V, equal func(V, V) bool) (keys []K) {
	for key, value := range a {
		if other, ok := b[key]; !ok || equal != nil && !equal(value, other) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y K) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	return keys
}

// asElement is an element in knftables' terms: of a set if it stands for nothing, of a map else.
func asElement(e element, verdict string) *knftables.Element {
	out := &knftables.Element{Key: strings.Split(e.key, " . ")}
	if verdict == "" {
		out.Set = e.in
		return out
	}
	out.Map, out.Value = e.in, []string{verdict}
	return out
}
