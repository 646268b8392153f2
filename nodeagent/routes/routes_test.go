package routes

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"kontiki/internal/netnstest"
)

// land is three nodes: the first two in one network, the third behind a router that knows nothing of pods.
//
//	n1 192.0.2.11 ─┐
//	               ├─ 192.0.2.1 router 198.51.100.1 ── n3 198.51.100.13
//	n2 192.0.2.12 ─┘
type land struct {
	t      *testing.T
	router *netnstest.Space
	spaces map[string]*netnstest.Space
	nodes  map[string]Peer
}

func newLand(t *testing.T) *land {
	l := &land{t: t, router: netnstest.New(t, "router"), spaces: map[string]*netnstest.Space{}, nodes: map[string]Peer{}}
	l.router.Run("ip link add lan type bridge", "ip link set lan up", "ip addr add 192.0.2.1/24 dev lan")
	require.True(t, l.router.Set("net/ipv4/ip_forward", "1"))
	for i, address := range []string{"192.0.2.11", "192.0.2.12", "198.51.100.13"} {
		name, pods := fmt.Sprintf("n%d", i+1), fmt.Sprintf("10.244.%d.", i+1)
		s := netnstest.New(t, name)
		l.spaces[name] = s
		l.nodes[name] = Peer{
			Name: name, Addresses: []netip.Addr{netip.MustParseAddr(address)},
			PodCIDRs: []netip.Prefix{netip.MustParsePrefix(pods + "0/24"), netip.MustParsePrefix(fmt.Sprintf("fd00:244:%d::/64", i+1))},
		}
		s.Connect("eth0", l.router, name)
		s.Run("ip addr add "+address+"/24 dev eth0", "ip addr add "+pods+"5/32 dev lo", fmt.Sprintf("ip addr add fd00:244:%d::5/128 dev lo", i+1))
		if i < 2 {
			l.router.Run("ip link set " + name + " master lan")
			s.Run("ip route add default via 192.0.2.1")
			continue
		}
		l.router.Run("ip addr add 198.51.100.1/24 dev " + name)
		s.Run("ip route add default via 198.51.100.1")
	}
	return l
}

// apply has a node know the others, but for those left out.
func (l *land) apply(name string, without ...string) {
	l.t.Helper()
	require.NoError(l.t, l.tryApply(name, without...))
}

func (l *land) tryApply(name string, without ...string) (err error) {
	self := l.nodes[name]
	var peers []Peer
	for other, p := range l.nodes {
		if other != name && !strings.Contains(strings.Join(without, " "), other) {
			peers = append(peers, p)
		}
	}
	l.spaces[name].In(func() { err = Apply(Node{Addresses: self.Addresses, PodCIDRs: self.PodCIDRs}, peers) })
	return err
}

// pod is the address of a pod on a node.
func pod(name string, isIPv6 bool) string {
	if isIPv6 {
		return fmt.Sprintf("fd00:244:%s::5", name[1:])
	}
	return fmt.Sprintf("10.244.%s.5", name[1:])
}

// reaches says whether a datagram from a pod of one node gets to a pod of another, with the sender's own address, and back.
func (l *land) reaches(from, to string, size int, isIPv6 bool) error {
	var there, here *net.UDPConn
	var err error
	l.spaces[to].In(func() { there, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(pod(to, isIPv6))}) })
	if err != nil {
		return err
	}
	defer there.Close()
	l.spaces[from].In(func() {
		here, err = net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(pod(from, isIPv6))}, there.LocalAddr().(*net.UDPAddr))
	})
	if err != nil {
		return err
	}
	defer here.Close()
	for attempt := range 5 { // the first may only teach the sender how large packets may be
		if _, err = here.Write(make([]byte, size)); err != nil {
			continue
		}
		buffer := make([]byte, size)
		_ = there.SetReadDeadline(time.Now().Add(time.Duration(attempt+1) * 200 * time.Millisecond))
		n, sender, readErr := there.ReadFromUDP(buffer)
		if err = readErr; err != nil {
			continue
		}
		if got := sender.IP.String(); got != pod(from, isIPv6) || n != size {
			return fmt.Errorf("%d bytes from %s", n, got)
		}
		if _, err = there.WriteToUDP([]byte("back"), sender); err != nil {
			continue
		}
		_ = here.SetReadDeadline(time.Now().Add(time.Second))
		_, err = here.Read(buffer)
		return err
	}
	return err
}

func (l *land) routesOf(name string) string {
	var all []netlink.Route
	l.spaces[name].In(func() {
		all, _ = netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: protocol}, netlink.RT_FILTER_PROTOCOL)
	})
	var texts []string
	for _, r := range all {
		texts = append(texts, fmt.Sprintf("%s via %s", r.Dst, r.Gw))
	}
	return strings.Join(texts, ", ")
}

// TestPodsOfAllNodes sends packets, small and full ones, between pods of each two nodes.
func TestPodsOfAllNodes(t *testing.T) {
	l := newLand(t)
	for name := range l.nodes {
		l.apply(name)
	}
	require.Equal(t, "10.244.2.0/24 via 192.0.2.12, 10.244.3.0/24 via 10.244.3.0", l.routesOf("n1"))
	for from := range l.nodes {
		for to := range l.nodes {
			if from == to {
				continue
			}
			for _, isIPv6 := range []bool{false, true} {
				for _, size := range []int{100, 1400, 1472, 4000} {
					require.NoError(t, l.reaches(from, to, size, isIPv6), "%s to %s, %d bytes, IPv6 %v", from, to, size, isIPv6)
				}
			}
		}
	}
}

// TestRoutesComeBack takes everything away, piece by piece, and lets a follower repair it.
func TestRoutesComeBack(t *testing.T) {
	l := newLand(t)
	l.apply("n3")
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		l.spaces["n1"].In(func() {
			ended <- Follow(ctx, func() {
				select {
				case changes <- struct{}{}:
				default:
				}
			})
		})
	}()
	repaired := make(chan struct{})
	go func() {
		defer close(repaired)
		for {
			select {
			case <-changes:
				_ = l.tryApply("n1", "n2") // an error while the damage is being done is made good by the next
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-repaired
		require.NoError(t, <-ended)
	})
	l.apply("n1", "n2")
	for _, damage := range []string{
		"ip route flush proto 107", "ip link del kontiki-vxlan", "ip link set kontiki-vxlan down",
	} {
		require.NoError(t, l.reaches("n1", "n3", 100, false))
		l.spaces["n1"].Run(damage)
		require.Eventually(t, func() bool { return l.reaches("n1", "n3", 100, false) == nil }, time.Minute, 20*time.Millisecond, damage)
	}
}

// TestNodesGo removes what led to a node that is gone, and the device with the last that needed it.
func TestNodesGo(t *testing.T) {
	l := newLand(t)
	l.apply("n1")
	l.spaces["n1"].Run("ip route add 10.99.0.0/16 via 192.0.2.1") // somebody else's
	l.apply("n1", "n2")
	require.Equal(t, "10.244.3.0/24 via 10.244.3.0", l.routesOf("n1"))
	l.apply("n1", "n2", "n3")
	require.Empty(t, l.routesOf("n1"))
	l.spaces["n1"].Run("ip route get 10.99.1.1")
	var err error
	l.spaces["n1"].In(func() { _, err = netlink.LinkByName(deviceName) })
	require.ErrorAs(t, err, &netlink.LinkNotFoundError{})
}

// TestErrorsNameTheNode has a peer without an address.
func TestErrorsNameTheNode(t *testing.T) {
	l := newLand(t)
	var err error
	l.spaces["n1"].In(func() {
		self := l.nodes["n1"]
		err = Apply(Node{Addresses: self.Addresses, PodCIDRs: self.PodCIDRs}, []Peer{
			{Name: "lost", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.9.0/24")}}, l.nodes["n2"],
		})
	})
	require.ErrorContains(t, err, "node lost")
	require.Equal(t, "10.244.2.0/24 via 192.0.2.12", l.routesOf("n1"), "the others are reached")
}
