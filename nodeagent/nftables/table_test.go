package nftables

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/knftables"
)

// failing is a kernel that refuses transactions for a while.
type failing struct {
	*knftables.Fake
	err error
}

func (f *failing) Run(ctx context.Context, tx *knftables.Transaction) error {
	if f.err != nil {
		return f.err
	}
	return f.Fake.Run(ctx, tx)
}

func base(tx *knftables.Transaction) {
	tx.Add(&knftables.Table{})
	tx.Add(&knftables.Map{Name: "m", Type: "ipv4_addr : verdict"})
}

// part is a chain of an owner, a set that the chain asks, and an element of the map that others may claim.
func part(owner, claim string) *Ruleset {
	r := NewRuleset()
	r.Chains[owner] = []string{"ip saddr @set-" + owner + " accept"}
	r.Sets["set-"+owner] = Set{Type: "ipv4_addr"}
	r.Elements[Element{In: "set-" + owner, Key: "10.0.0.1"}] = ""
	r.Elements[Element{In: "m", Key: claim}] = "goto " + owner
	return r
}

// A transaction that fails changes nothing in the kernel, and what it would have changed comes with the next.
func TestFailedApply(t *testing.T) {
	fake := &failing{Fake: knftables.NewFake(knftables.IPv4Family, "t")}
	table := New(fake, base)
	require.NoError(t, table.Apply(t.Context(), map[string]*Ruleset{"a": part("a", "1.1.1.1"), "b": part("b", "1.1.1.2")}))
	before := fake.Dump()
	fake.err = errors.New("no")
	require.ErrorIs(t, table.Apply(t.Context(), map[string]*Ruleset{"a": nil, "c": part("c", "1.1.1.3")}), fake.err)
	require.Equal(t, before, fake.Dump())
	fake.err = nil
	require.NoError(t, table.Apply(t.Context(), nil))
	afresh := knftables.NewFake(knftables.IPv4Family, "t")
	require.NoError(t, New(afresh, base).Apply(t.Context(), map[string]*Ruleset{"b": part("b", "1.1.1.2"), "c": part("c", "1.1.1.3")}))
	require.Equal(t, afresh.Dump(), fake.Dump())
	require.ElementsMatch(t, []string{"b", "c"}, table.Owners())
}

// Of those that claim an element the first by name has it; the others get it in their turn.
func TestClaims(t *testing.T) {
	fake := knftables.NewFake(knftables.IPv4Family, "t")
	table := New(fake, base)
	has := func() string { return fake.Table.Maps["m"].FindElement("1.1.1.1").Value[0] }
	for _, step := range []struct {
		owner string
		part  *Ruleset
		want  string
	}{
		{"b", part("b", "1.1.1.1"), "goto b"}, {"c", part("c", "1.1.1.1"), "goto b"}, {"a", part("a", "1.1.1.1"), "goto a"},
		{"b", nil, "goto a"}, {"a", part("a", "1.1.1.9"), "goto c"},
	} {
		require.NoError(t, table.Apply(t.Context(), map[string]*Ruleset{step.owner: step.part}))
		require.Equal(t, step.want, has(), "after %s", step.owner)
	}
}

// What is added before the first Apply stands beside what was there, and goes with it when that comes.
func TestAmend(t *testing.T) {
	fake := knftables.NewFake(knftables.IPv4Family, "t")
	require.NoError(t, New(fake, base).Apply(t.Context(), map[string]*Ruleset{"a": part("a", "1.1.1.1")}))
	next := New(fake, base)
	require.NoError(t, next.Amend(t.Context(), part("b", "1.1.1.2")))
	require.Len(t, fake.Table.Maps["m"].Elements, 2)
	require.NoError(t, next.Apply(t.Context(), map[string]*Ruleset{"d": part("d", "1.1.1.3")}))
	require.Len(t, fake.Table.Maps["m"].Elements, 1)
	require.NoError(t, next.Remove(t.Context()))
	require.Nil(t, fake.Table)
}
