package network_test

import (
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/netnstest"
	"kontiki/nodeagent/network"
)

// firewalls are the programs for the rules of iptables that a machine may have, with those for IPv6.
var firewalls = map[string][]string{"nft": {"iptables-nft", "ip6tables-nft"}, "legacy": {"iptables-legacy", "ip6tables-legacy"}}

// TestFirewallThatForwardsNothing: pods reach pods, those of other nodes, and the world, on machines whose iptables drops what is
// forwarded, as with Docker beside; also when that comes later, or takes the rules away. Everything else is dropped as before,
// and what Kontiki adds can be removed.
func TestFirewallThatForwardsNothing(t *testing.T) {
	for kind, programs := range firewalls {
		t.Run(kind, func(t *testing.T) {
			for _, program := range programs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip("needs " + program + " (Debian's iptables)")
				}
			}
			nodes, router := threeNodes(t)
			second := netnstest.New(t, "second")
			n := nodes[0]
			all := func(rules string) {
				for _, program := range programs {
					n.Run(program + " -w " + rules)
				}
			}
			if out, err := try(n, programs[0], "-w", "-P", "FORWARD", "DROP"); err != nil {
				t.Skip("needs the kernel's tables of "+kind+": ", out)
			}
			all("-P FORWARD DROP")
			var ips []netip.Addr
			var err error
			n.In(func() { ips, err = n.net.Attach(t.Context(), network.Pod{ID: "second", NetNS: second.Path()}) })
			require.NoError(t, err)
			require.True(t, n.Set("net/bridge/bridge-nf-call-iptables", "1") && n.Set("net/bridge/bridge-nf-call-ip6tables", "1"), "br_netfilter")
			n.pod.In(func() { _, err = net.DialTimeout("tcp", nodes[1].ips[0].String()+":9", time.Second) })
			require.NotErrorIs(t, err, syscall.ECONNREFUSED, "nothing is forwarded before")
			require.Error(t, err)

			for _, damage := range []string{"", "-F FORWARD", "-A FORWARD -j REJECT"} {
				if damage != "" {
					all(damage)
				}
				n.In(func() { err = n.net.Repair(t.Context()) })
				require.NoError(t, err)
				for family := range 2 {
					for _, c := range []struct {
						from, to *netnstest.Space
						address  netip.Addr
					}{
						{n.pod, second, ips[family]}, {n.pod, nodes[1].pod, nodes[1].ips[family]}, {nodes[2].pod, n.pod, n.ips[family]},
						{n.pod, router, netip.MustParseAddr([]string{"192.0.2.1", "2001:db8:2::1"}[family])},
					} {
						_, err := send(c.from, c.to, c.address, 1000)
						require.NoError(t, err, "to %s after %q", c.address, damage)
					}
				}
				require.Equal(t, 2, strings.Count(listed(t, n, programs[0]), "kontiki-pods"), "each rule once")
			}
			n.In(func() { err = n.net.Repair(t.Context()) })
			require.NoError(t, err)
			require.Equal(t, 2, strings.Count(listed(t, n, programs[0]), "kontiki-pods"), "each rule once")

			// What somebody saved at a shutdown and restored at the start is known again.
			restored, err := try(n, "sh", "-c", programs[0]+"-save | "+programs[0]+"-restore")
			require.NoError(t, err, restored)
			n.In(func() { err = n.net.Repair(t.Context()) })
			require.NoError(t, err)
			require.Equal(t, 2, strings.Count(listed(t, n, programs[0]), "kontiki-pods"), "each rule once")

			n.In(func() { err = network.RemoveAccepting(t.Context()) })
			require.NoError(t, err)
			for _, program := range programs {
				require.Equal(t, "-P FORWARD DROP\n-A FORWARD -j REJECT", strings.Split(listed(t, n, program), " --reject-with")[0])
			}
		})
	}
}

// TestNoFirewall: a machine that forwards everything has no rule of iptables afterwards, and no table.
func TestNoFirewall(t *testing.T) {
	if _, err := exec.LookPath("iptables-nft"); err != nil {
		t.Skip("needs iptables-nft (Debian's iptables)")
	}
	nodes, _ := threeNodes(t)
	n := nodes[0]
	var err error
	n.In(func() { err = n.net.Repair(t.Context()) })
	require.NoError(t, err)
	out, err := try(n, "nft", "list tables")
	require.NoError(t, err, out)
	require.NotContains(t, out, "filter")
}

func listed(t *testing.T, n *nodeSpace, program string) string {
	t.Helper()
	out, err := try(n, program, "-w", "-S", "FORWARD")
	require.NoError(t, err, out)
	return strings.TrimSpace(out)
}

// try runs a program on the machine.
func try(n *nodeSpace, words ...string) (string, error) {
	var out []byte
	var err error
	n.In(func() { out, err = exec.Command(words[0], words[1:]...).CombinedOutput() })
	return string(out), err
}
