package proxy

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/knftables"

	"kontiki/nodeagent/nftables"
)

// ipv4 is the family of these tests.
var ipv4 = families([]netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}, []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")})[0]

// strict is a fake that minds each transaction that is refused: a table that is written anew after it would hide it.
type strict struct {
	*knftables.Fake
	t require.TestingT
}

func (s strict) Run(ctx context.Context, tx *knftables.Transaction) error {
	err := s.Fake.Run(ctx, tx)
	require.NoError(s.t, err)
	return err
}

// TestDifferences goes from any set of Services to any other, step by step, and must arrive where one that starts from
// nothing arrives. knftables' fake refuses steps in a wrong order as the kernel does.
func TestDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fake := knftables.NewFake(ipv4.family, "services")
		stepwise, all := nftables.New(strict{fake, t}, ipv4.begin), map[string]*nftables.Ruleset{}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			changes := drawRules(t)
			maps.Copy(all, changes)
			require.NoError(t, stepwise.Apply(t.Context(), changes))
			afresh := knftables.NewFake(ipv4.family, "services")
			require.NoError(t, nftables.New(afresh, ipv4.begin).Apply(t.Context(), all))
			require.Equal(t, sortedLines(afresh), sortedLines(fake))
		}
	})
}

// drawRules are the changes of up to five Services.
func drawRules(t *rapid.T) map[string]*nftables.Ruleset {
	changes := map[string]*nftables.Ruleset{}
	for i := range 5 {
		key := fmt.Sprintf("shop/s%d", i)
		if step := rapid.IntRange(0, 3).Draw(t, "change, goes or stays"); step == 1 {
			changes[key] = nil
		} else if step == 0 {
			continue
		}
		if _, goes := changes[key]; goes {
			continue
		}
		f := &frontend{
			service: fmt.Sprintf("shop/s%d", i), protocol: "tcp", port: 80, cluster: netip.AddrFrom4([4]byte{10, 96, 0, byte(i)}),
			externalLocal: rapid.Bool().Draw(t, "external local"), internalLocal: rapid.Bool().Draw(t, "internal local"),
		}
		if rapid.Bool().Draw(t, "node port") {
			f.nodePort = uint16(30000 + i)
		}
		if rapid.Bool().Draw(t, "external IP") {
			f.external = []netip.Addr{netip.MustParseAddr("203.0.113.1")} // the same for all
		}
		if rapid.Bool().Draw(t, "load balancer") {
			f.balanced = []netip.Addr{netip.AddrFrom4([4]byte{203, 0, 113, byte(10 + i)})}
			f.sources = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		}
		if rapid.Bool().Draw(t, "affinity") {
			f.affinity = 10 * time.Second
		}
		var all []endpoint
		for n := range rapid.IntRange(0, 3).Draw(t, "endpoints") {
			all = append(all, endpoint{
				address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 0, byte(n)}), 8080),
				ready:   rapid.Bool().Draw(t, "ready"), local: rapid.Bool().Draw(t, "local"),
			})
		}
		one := newRuleset()
		one.add(f, all, here{}, ipv4)
		changes[key] = one.Ruleset
	}
	return changes
}

// sortedLines is what a table holds, whatever the order it came in; rules of a chain keep theirs.
func sortedLines(fake *knftables.Fake) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(fake.Table.Chains)) {
		lines = append(lines, "chain "+name)
		for _, rule := range fake.Table.Chains[name].Rules {
			lines = append(lines, "  "+rule.Rule)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fake.Table.Sets)) {
		lines = append(lines, "set "+name)
		lines = append(lines, elementsOf(fake.Table.Sets[name].Elements)...)
	}
	for _, name := range slices.Sorted(maps.Keys(fake.Table.Maps)) {
		lines = append(lines, "map "+name)
		lines = append(lines, elementsOf(fake.Table.Maps[name].Elements)...)
	}
	return lines
}

func elementsOf(all []*knftables.Element) (lines []string) {
	for _, e := range all {
		lines = append(lines, fmt.Sprint("  ", e.Key, e.Value))
	}
	slices.Sort(lines)
	return lines
}

// TestFirstServiceHasTheAddress is two Services with one external IP and port: the second has it when the first goes.
func TestFirstServiceHasTheAddress(t *testing.T) {
	fake, shared := knftables.NewFake(ipv4.family, "services"), []netip.Addr{netip.MustParseAddr("203.0.113.1")}
	table, claimed := nftables.New(fake, ipv4.begin), nftables.Element{In: servicesMap, Key: "203.0.113.1 . tcp . 80"}
	for i, name := range []string{"shop/s1", "shop/s0"} {
		one := newRuleset()
		f := &frontend{service: name, protocol: "tcp", port: 80, cluster: netip.AddrFrom4([4]byte{10, 96, 0, byte(i)}), external: shared}
		one.add(f, []endpoint{from("10.244.0.1:8080")}, here{}, ipv4)
		require.NoError(t, table.Apply(t.Context(), map[string]*nftables.Ruleset{name: one.Ruleset}))
		require.Equal(t, []string{"goto external/" + name + "/tcp/80"}, fake.Table.Maps[servicesMap].FindElement("203.0.113.1", "tcp", "80").Value)
	}
	require.Equal(t, map[nftables.Element][]string{claimed: {"shop/s1"}}, table.Losers("shop/s0"))
	require.NoError(t, table.Apply(t.Context(), map[string]*nftables.Ruleset{"shop/s0": nil}))
	require.Equal(t, []string{"goto external/shop/s1/tcp/80"}, fake.Table.Maps[servicesMap].FindElement("203.0.113.1", "tcp", "80").Value)
}

// BenchmarkChange is one of 1,000 Services of 10 endpoints that changes: what is computed for it beside nft's own work.
func BenchmarkChange(b *testing.B) {
	table := nftables.New(noKernel{knftables.NewFake(ipv4.family, "services")}, ipv4.begin)
	changes := map[string]*nftables.Ruleset{}
	for i := range 1000 {
		changes[fmt.Sprint("shop/s", i)] = tenEndpoints(i, 0)
	}
	require.NoError(b, table.Apply(b.Context(), changes))
	for version := 1; b.Loop(); version++ {
		require.NoError(b, table.Apply(b.Context(), map[string]*nftables.Ruleset{"shop/s500": tenEndpoints(500, version)}))
	}
}

// noKernel takes every transaction.
type noKernel struct{ knftables.Interface }

func (noKernel) Run(context.Context, *knftables.Transaction) error { return nil }

func tenEndpoints(i, version int) *nftables.Ruleset {
	var all []endpoint
	for n := range 10 {
		all = append(all, endpoint{
			address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, byte(i / 25), byte(i%25*10 + n)}), uint16(8000+version%2)), ready: true,
		})
	}
	r := newRuleset()
	r.add(&frontend{
		service: fmt.Sprint("shop/s", i), protocol: "tcp", port: 80, cluster: netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}),
	}, all, here{}, ipv4)
	return r.Ruleset
}
