package routes

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestNodeMoves: a node that gets an address in another network is reached another way, in both directions; back and forth.
func TestNodeMoves(t *testing.T) {
	l := newLand(t)
	behind := l.nodes["n3"]
	beside := behind
	beside.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.13")}
	for _, step := range []struct {
		n3       Peer
		commands []string // on n3
		routed   bool     // through the router
	}{
		{behind, nil, true},
		{beside, []string{"ip addr flush dev eth0 scope global", "ip addr add 192.0.2.13/24 dev eth0", "ip route add default via 192.0.2.1"}, false},
		{behind, []string{"ip addr flush dev eth0 scope global", "ip addr add 198.51.100.13/24 dev eth0", "ip route add default via 198.51.100.1"}, true},
	} {
		if step.commands != nil {
			if step.routed {
				l.router.Run("ip link set n3 nomaster", "ip addr add 198.51.100.1/24 dev n3")
			} else {
				l.router.Run("ip addr flush dev n3", "ip link set n3 master lan")
			}
			l.spaces["n3"].Run(step.commands...)
		}
		l.nodes["n3"] = step.n3
		for name := range l.nodes {
			l.apply(name)
		}
		way := "10.244.3.0/24 via 192.0.2.13"
		if step.routed {
			way = "10.244.3.0/24 via 10.244.3.0" // through the tunnel
		}
		require.Contains(t, l.routesOf("n1"), way)
		for _, pair := range [][2]string{{"n1", "n3"}, {"n3", "n2"}, {"n1", "n2"}} {
			require.Eventually(t, func() bool { return l.reaches(pair[0], pair[1], 1400, false) == nil }, time.Minute, 20*time.Millisecond, "%v", pair)
		}
	}
}

// TestWholePackets: what fits through the tunnel arrives in one piece, which may not be cut; what does not, its sender is told.
func TestWholePackets(t *testing.T) {
	l := newLand(t)
	for name := range l.nodes {
		l.apply(name)
	}
	var link netlink.Link
	var err error
	l.spaces["n1"].In(func() { link, err = netlink.LinkByName(deviceName) })
	require.NoError(t, err)
	require.Equal(t, 1450, link.Attrs().MTU)
	var there, here *net.UDPConn
	l.spaces["n3"].In(func() { there, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(pod("n3", false))}) })
	require.NoError(t, err)
	defer there.Close()
	l.spaces["n1"].In(func() {
		here, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(pod("n1", false))}, there.LocalAddr().(*net.UDPAddr))
	})
	require.NoError(t, err)
	defer here.Close()
	raw, err := here.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	}))
	require.NoError(t, err)
	const headers = 20 + 8 // of IP and UDP
	buffer := make([]byte, 2000)
	require.Eventually(t, func() bool {
		if _, err := here.Write(make([]byte, 1450-headers)); err != nil {
			return false
		}
		_ = there.SetReadDeadline(time.Now().Add(time.Second))
		n, _, err := there.ReadFromUDP(buffer)
		return err == nil && n == 1450-headers
	}, time.Minute, 20*time.Millisecond)
	_, err = here.Write(make([]byte, 1451-headers))
	require.True(t, errors.Is(err, syscall.EMSGSIZE), "%v", err)
}
