package nftables

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/knftables"
)

// Table is a table of the kernel that this process alone writes. It is not safe for concurrent use.
type Table struct {
	open func() (knftables.Interface, error)
	nft  knftables.Interface // nil until open has succeeded
	base func(*knftables.Transaction)

	wanted  map[string]*Ruleset  // by owner
	claims  map[Element][]string // the owners that want each, by name
	written bool                 // the kernel has what is wanted
}

// Open is a table of the name. base adds the table, and in it what all owners share. Whether the machine has a working nft is
// asked by what uses it, each time until it has: it may be installed, or get its rights, while the agent runs.
func Open(family knftables.Family, name string, base func(*knftables.Transaction)) *Table {
	return newTable(func() (knftables.Interface, error) { return knftables.New(family, name) }, base)
}

// New is a table that is written with nft; Open is for all but tests.
func New(nft knftables.Interface, base func(*knftables.Transaction)) *Table {
	return newTable(func() (knftables.Interface, error) { return nft, nil }, base)
}

func newTable(open func() (knftables.Interface, error), base func(*knftables.Transaction)) *Table {
	return &Table{open: open, base: base, wanted: map[string]*Ruleset{}, claims: map[Element][]string{}}
}

// begin is a transaction. The error wraps ErrUnavailable.
func (t *Table) begin() (*knftables.Transaction, error) {
	if t.nft == nil {
		nft, err := t.open()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		t.nft = nft
	}
	return t.nft.NewTransaction(), nil
}

// run has the kernel do what is in a transaction.
func (t *Table) run(ctx context.Context, tx *knftables.Transaction) error {
	if err := t.nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	return nil
}

// Apply gives owners new parts, nil to take theirs away, and has the kernel follow in one transaction. After an error the
// parts count as given, the kernel has what it had, and the next Apply, also one without changes, writes everything. The
// error wraps ErrUnavailable where there is no nft.
func (t *Table) Apply(ctx context.Context, changes map[string]*Ruleset) error {
	touched := map[Element]bool{}
	before, after := NewRuleset(), NewRuleset()
	for owner, next := range changes {
		before.take(t.wanted[owner], touched)
		after.take(next, touched)
	}
	t.winners(touched, before)
	for owner, next := range changes {
		t.replace(owner, next)
	}
	t.winners(touched, after)

	tx, err := t.begin()
	if err != nil {
		return err
	}
	if t.written {
		if difference(tx, before, after); tx.NumOperations() == 0 {
			return nil
		}
		if t.written = t.run(ctx, tx) == nil; t.written {
			return nil
		}
		// What was there is not what it should be: somebody has taken it away.
	}
	return t.writeAll(ctx)
}

// writeAll replaces whatever the kernel has by all that is wanted.
func (t *Table) writeAll(ctx context.Context) error {
	tx := t.nft.NewTransaction()
	tx.Add(&knftables.Table{}) // or it could not be deleted
	tx.Delete(&knftables.Table{})
	t.base(tx)
	difference(tx, NewRuleset(), t.everything())
	err := t.run(ctx, tx)
	t.written = err == nil
	return err
}

// Verify looks whether a chain of the base still has rules. If it has none, because somebody has flushed what is not theirs,
// the next Apply writes everything, and lost is true. So it is when nobody can tell.
func (t *Table) Verify(ctx context.Context, chain string) (lost bool) {
	if !t.written {
		return false // the next Apply does anyway
	}
	rules, err := t.nft.ListRules(ctx, chain)
	t.written = err == nil && len(rules) > 0
	return !t.written
}

// Remove takes the table away. The next Apply writes it anew. The error wraps ErrUnavailable where there is no nft.
func (t *Table) Remove(ctx context.Context) error {
	tx, err := t.begin()
	if err != nil {
		return err
	}
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	t.written = false
	return t.run(ctx, tx)
}

// Amend adds to whatever table is there, with the base, before the first Apply replaces it. It fails where the kernel has an
// element of it that stands for something else.
func (t *Table) Amend(ctx context.Context, part *Ruleset) error {
	tx, err := t.begin()
	if err != nil {
		return err
	}
	t.base(tx)
	difference(tx, NewRuleset(), part)
	t.written = false
	return t.run(ctx, tx)
}

// Owners are those that have a part.
func (t *Table) Owners() []string { return slices.Collect(maps.Keys(t.wanted)) }

// Losers says of the elements that an owner wants who goes without: because another owner has it and wants it otherwise.
func (t *Table) Losers(owner string) map[Element][]string {
	losers := map[Element][]string{}
	rules := t.wanted[owner]
	if rules == nil {
		return losers
	}
	for e := range rules.Elements {
		owners := t.claims[e]
		for _, other := range owners[1:] {
			if t.wanted[other].Elements[e] != t.wanted[owners[0]].Elements[e] {
				losers[e] = append(losers[e], other)
			}
		}
	}
	return losers
}

// replace makes a part the owner's, in memory.
func (t *Table) replace(owner string, next *Ruleset) {
	if last := t.wanted[owner]; last != nil {
		for e := range last.Elements {
			if t.claims[e] = slices.DeleteFunc(t.claims[e], func(o string) bool { return o == owner }); len(t.claims[e]) == 0 {
				delete(t.claims, e)
			}
		}
	}
	delete(t.wanted, owner)
	if next == nil {
		return
	}
	t.wanted[owner] = next
	for e := range next.Elements {
		at, _ := slices.BinarySearch(t.claims[e], owner)
		t.claims[e] = slices.Insert(t.claims[e], at, owner)
	}
}

// winners puts into r what the first of those that claim an element wants of it.
func (t *Table) winners(elements map[Element]bool, r *Ruleset) {
	for e := range elements {
		if owners := t.claims[e]; len(owners) > 0 {
			r.Elements[e] = t.wanted[owners[0]].Elements[e]
		}
	}
}

func (t *Table) everything() *Ruleset {
	all := NewRuleset()
	for _, rules := range t.wanted {
		maps.Copy(all.Chains, rules.Chains)
		maps.Copy(all.Sets, rules.Sets)
	}
	for e, owners := range t.claims {
		all.Elements[e] = t.wanted[owners[0]].Elements[e]
	}
	return all
}

// take adds the chains and sets of a part, and notes its elements.
func (r *Ruleset) take(part *Ruleset, elements map[Element]bool) {
	if part == nil {
		return
	}
	maps.Copy(r.Chains, part.Chains)
	maps.Copy(r.Sets, part.Sets)
	for e := range part.Elements {
		elements[e] = true
	}
}
