package proxy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/knftables"
)

// ipv4 is the family of these tests.
var ipv4 = families([]netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}, []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")})[0]

// TestDifferences goes from any set of frontends to any other, step by step, and must arrive where one that starts from
// nothing arrives. knftables' fake refuses steps in a wrong order as the kernel does.
func TestDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fake := knftables.NewFake(ipv4.family, "services")
		stepwise := &table{family: ipv4, nft: fake}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			wanted := drawRules(t)
			require.NoError(t, stepwise.apply(t.Context(), wanted))
			afresh := knftables.NewFake(ipv4.family, "services")
			require.NoError(t, (&table{family: ipv4, nft: afresh}).apply(t.Context(), wanted))
			require.Equal(t, sortedLines(afresh), sortedLines(fake))
		}
	})
}

// drawRules are those of up to five Services.
func drawRules(t *rapid.T) *ruleset {
	sum := newRuleset()
	for i := range rapid.IntRange(0, 5).Draw(t, "services") {
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
		sum.merge(one)
	}
	return sum
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

// TestFirstServiceHasTheAddress is two Services with one external IP and port.
func TestFirstServiceHasTheAddress(t *testing.T) {
	sum, shared := newRuleset(), []netip.Addr{netip.MustParseAddr("203.0.113.1")}
	for i, want := range [][]element{nil, {{servicesMap, "203.0.113.1 . tcp . 80"}}} {
		one := newRuleset()
		f := &frontend{service: fmt.Sprint("shop/s", i), protocol: "tcp", port: 80, cluster: netip.AddrFrom4([4]byte{10, 96, 0, byte(i)}), external: shared}
		one.add(f, []endpoint{from("10.244.0.1:8080")}, here{}, ipv4)
		require.Equal(t, want, sum.merge(one))
	}
	require.Equal(t, "goto external/shop/s0/tcp/80", sum.elements[element{servicesMap, "203.0.113.1 . tcp . 80"}])
}

// BenchmarkChange is one of 1,000 Services of 10 endpoints that changes: what is computed for it beside nft's own work.
func BenchmarkChange(b *testing.B) {
	rules := make([]*ruleset, 1000)
	for i := range rules {
		rules[i] = tenEndpoints(i, 0)
	}
	known := newRuleset()
	for _, r := range rules {
		known.merge(r)
	}
	nft := knftables.NewFake(ipv4.family, "services")
	for b.Loop() {
		rules[500] = tenEndpoints(500, b.N)
		wanted := newRuleset()
		for _, r := range rules {
			wanted.merge(r)
		}
		difference(nft.NewTransaction(), known, wanted, ipv4)
	}
}

func tenEndpoints(i, version int) *ruleset {
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
	return r
}
