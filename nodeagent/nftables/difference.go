package nftables

import (
	"cmp"
	"slices"

	"sigs.k8s.io/knftables"
)

// difference writes the steps from one ruleset to another, in the order that nftables demands: nothing refers to what is not
// there yet, and nothing goes that is still referred to.
func difference(tx *knftables.Transaction, before, after *Ruleset) {
	same := func(a, b string) bool { return a == b }
	for _, e := range missing(before.Elements, after.Elements, same, compare) {
		if !gone(before.Sets, after.Sets, e.In) {
			tx.Delete(e.standing(before.Elements[e]))
		}
	}
	for _, name := range missing(after.Sets, before.Sets, nil, cmp.Compare[string]) {
		tx.Add(after.Sets[name].named(name))
	}
	changed := missing(after.Chains, before.Chains, slices.Equal[[]string], cmp.Compare[string]) // new ones, too
	for _, name := range changed {
		tx.Add(&knftables.Chain{Name: name})
	}
	unused := missing(before.Chains, after.Chains, nil, cmp.Compare[string])
	for _, name := range slices.Concat(changed, unused) {
		if _, was := before.Chains[name]; was {
			tx.Flush(&knftables.Chain{Name: name})
		}
	}
	for _, name := range changed {
		AddRules(tx, name, after.Chains[name]...)
	}
	for _, e := range missing(after.Elements, before.Elements, same, compare) {
		tx.Add(e.standing(after.Elements[e]))
	}
	for _, name := range unused {
		tx.Delete(&knftables.Chain{Name: name})
	}
	for _, name := range missing(before.Sets, after.Sets, nil, cmp.Compare[string]) {
		tx.Delete(&knftables.Set{Name: name})
	}
}

// gone says whether a set goes, and its elements with it.
func gone(before, after map[string]Set, name string) bool {
	_, was := before[name]
	_, is := after[name]
	return was && !is
}

// missing lists, in order, the keys of a that b has not or, with equal, has with another value.
func missing[K comparable, V any](a, b map[K]V, equal func(V, V) bool, order func(K, K) int) (keys []K) {
	for key, value := range a {
		if other, ok := b[key]; !ok || equal != nil && !equal(value, other) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, order)
	return keys
}

func compare(a, b Element) int { return cmp.Or(cmp.Compare(a.In, b.In), cmp.Compare(a.Key, b.Key)) }

// AddBase adds a base chain with its rules: one that the kernel calls.
func AddBase(tx *knftables.Transaction, name string, kind knftables.BaseChainType, hook knftables.BaseChainHook, priority knftables.BaseChainPriority, rules ...string) {
	tx.Add(&knftables.Chain{Name: name, Type: &kind, Hook: &hook, Priority: &priority})
	AddRules(tx, name, rules...)
}

// AddChain adds a chain with its rules.
func AddChain(tx *knftables.Transaction, name string, rules ...string) {
	tx.Add(&knftables.Chain{Name: name})
	AddRules(tx, name, rules...)
}

// AddRules adds rules to a chain.
func AddRules(tx *knftables.Transaction, chain string, rules ...string) {
	for _, rule := range rules {
		tx.Add(&knftables.Rule{Chain: chain, Rule: rule})
	}
}
