package lab

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecondAddresses: all machines that a lab has room for have a second address that reads like the first.
func TestSecondAddresses(t *testing.T) {
	l := &Lab{}
	for range maxHosts {
		l.add("m", false, true)
	}
	require.Equal(t, "10.89.0.11,fd00:89::11", l.Hosts[0].nodeIP())
	require.Equal(t, "10.89.0.210,fd00:89::210", l.Hosts[maxHosts-1].nodeIP())
	seen := map[string]bool{}
	for _, h := range l.Hosts {
		require.True(t, network6.Contains(netip.MustParseAddr(h.Address6)), h.Address6)
		seen[h.Address6] = true
	}
	require.Len(t, seen, maxHosts)
}

// TestCutBothFamilies: a machine that is cut off is so by both of its addresses.
func TestCutBothFamilies(t *testing.T) {
	l := &Lab{}
	for _, name := range []string{"s1", "s2", "s3"} {
		l.add(name, true, true)
	}
	l.Hosts[0].Faults.Cut = []string{"s2", "s3"}
	require.Equal(t, map[string][]string{"ip": {"10.89.0.12", "10.89.0.13"}, "ip6": {"fd00:89::12", "fd00:89::13"}}, l.Hosts[0].cutAddresses())
	require.Empty(t, l.Hosts[1].cutAddresses())
}
