package announce

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"kontiki/internal/netnstest"
)

// TestWire: a machine hears of another that answers for an address, and not of itself; the kernel takes an address off that
// nobody renews.
func TestWire(t *testing.T) {
	a, b := netnstest.New(t, "a"), netnstest.New(t, "b")
	a.Connect("eth0", b, "eth0")
	a.Run("ip addr add 192.0.2.1/24 dev eth0", "ip addr add 2001:db8::1/64 dev eth0 nodad")
	b.Run("ip addr add 192.0.2.2/24 dev eth0", "ip addr add 2001:db8::2/64 dev eth0 nodad")
	addresses := []netip.Addr{netip.MustParseAddr("192.0.2.100"), netip.MustParseAddr("2001:db8::100")}
	elsewhere := func(s *netnstest.Space, address netip.Addr) (is bool) {
		var err error
		s.In(func() { is, err = kernel{}.isElsewhere(t.Context(), address) })
		require.NoError(t, err)
		return is
	}
	do := func(s *netnstest.Space, f func(netip.Addr) error, address netip.Addr) {
		var err error
		s.In(func() { err = f(address) })
		require.NoError(t, err)
	}
	hold := func(address netip.Addr) error { return kernel{}.hold(address, lifetimeSeconds) }
	has := func(address netip.Addr) (is bool) {
		var err error
		a.In(func() { is, err = kernel{}.has(address) })
		require.NoError(t, err)
		return is
	}
	require.False(t, has(netip.MustParseAddr("192.0.2.1")), "one that is there for good")
	for _, address := range addresses {
		require.False(t, elsewhere(b, address))
		require.False(t, has(address))
		do(a, hold, address)
		require.True(t, has(address))
		do(a, kernel{}.tell, address)
		// Until its link-local address is settled a machine sends and answers nothing by NDP.
		require.Eventually(t, func() bool { return elsewhere(b, address) }, time.Minute, 10*time.Millisecond)
		require.False(t, elsewhere(a, address), "itself")
		do(a, kernel{}.drop, address)
		do(a, kernel{}.drop, address)
		require.False(t, elsewhere(b, address))
		do(a, hold, address)
	}
	require.Eventually(t, func() bool {
		var left []netlink.Addr
		var err error
		a.In(func() { left, err = netlink.AddrList(nil, netlink.FAMILY_ALL) })
		require.NoError(t, err)
		for _, l := range left {
			for _, address := range addresses {
				if l.IP.Equal(address.AsSlice()) {
					return false
				}
			}
		}
		return true
	}, time.Minute, 50*time.Millisecond)
}
