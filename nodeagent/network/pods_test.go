package network_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"kontiki/internal/netnstest"
	"kontiki/nodeagent/network"
	"kontiki/nodeagent/routes"
)

// nodeSpace is a machine with the default pod network, made by the real plugins, and one pod.
type nodeSpace struct {
	*netnstest.Space
	net  *network.Network
	pod  *netnstest.Space
	ips  []netip.Addr
	peer routes.Peer
}

func plugins(t *testing.T, names ...string) string {
	dir := os.Getenv("KONTIKI_BIN")
	if dir == "" {
		dir = filepath.Join("..", "..", "bin")
	}
	dir, err := filepath.Abs(filepath.Join(dir, "cni"))
	require.NoError(t, err)
	for _, name := range names {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			t.Skip("needs the CNI plugin " + name + " (make build)")
		}
	}
	return dir
}

// newNode makes the i-th node; its interface eth0 is the caller's to connect before, with connect.
func newNode(t *testing.T, i int, addresses []string, connect func(*netnstest.Space)) *nodeSpace {
	name := fmt.Sprintf("n%d", i)
	n := &nodeSpace{Space: netnstest.New(t, name, "nft"), pod: netnstest.New(t, "pod"+name)}
	connect(n.Space)
	n.peer.Name = name
	for _, a := range addresses {
		n.peer.Addresses = append(n.peer.Addresses, netip.MustParseAddr(a))
	}
	v4, v6 := fmt.Sprintf("10.244.%d.0/24", i), fmt.Sprintf("fd00:244:0:%d::/64", i)
	n.peer.PodCIDRs = []netip.Prefix{netip.MustParsePrefix(v4), netip.MustParsePrefix(v6)}
	var err error
	n.net, err = network.New(network.Config{
		ConfDir: filepath.Join(t.TempDir(), "net.d"), BinDirs: []string{plugins(t, "bridge", "host-local")}, StateDir: t.TempDir(),
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/48")},
		Address:      n.peer.Addresses[0],
	})
	require.NoError(t, err)
	n.In(func() {
		if err = n.net.SetPodCIDR(t.Context(), v4+","+v6); err == nil {
			n.ips, err = n.net.Attach(t.Context(), network.Pod{ID: name, NetNS: n.pod.Path()})
		}
	})
	require.NoError(t, err)
	return n
}

func (n *nodeSpace) route(peers ...routes.Peer) (err error) {
	n.In(func() { err = routes.Apply(routes.Node{Addresses: n.peer.Addresses, PodCIDRs: n.peer.PodCIDRs}, peers) })
	return err
}

// threeNodes are two nodes in one network and a third behind a router that knows nothing of pods, all with both IP families.
// The router is the outside, too.
func threeNodes(t *testing.T) (nodes []*nodeSpace, router *netnstest.Space) {
	router = netnstest.New(t, "router")
	router.Run("ip link add lan type bridge", "ip link set lan up", "ip addr add 192.0.2.1/24 dev lan", "ip addr add 2001:db8:2::1/64 dev lan nodad")
	require.True(t, router.Set("net/ipv4/ip_forward", "1"))
	if !router.Set("net/ipv6/conf/all/forwarding", "1") {
		t.Skip("needs IPv6")
	}
	for i := 1; i <= 3; i++ {
		port := fmt.Sprintf("n%d", i)
		v4, v6, gate4, gate6 := fmt.Sprintf("192.0.2.1%d", i), fmt.Sprintf("2001:db8:2::1%d", i), "192.0.2.1", "2001:db8:2::1"
		if i == 3 {
			v4, v6, gate4, gate6 = "198.51.100.13", "2001:db8:51::13", "198.51.100.1", "2001:db8:51::1"
		}
		nodes = append(nodes, newNode(t, i, []string{v4, v6}, func(s *netnstest.Space) {
			s.Connect("eth0", router, port)
			s.Run("ip addr add "+v4+"/24 dev eth0", "ip addr add "+v6+"/64 dev eth0 nodad", "ip route add default via "+gate4, "ip route add default via "+gate6)
			if i < 3 {
				router.Run("ip link set " + port + " master lan")
				return
			}
			router.Run("ip addr add "+gate4+"/24 dev "+port, "ip addr add "+gate6+"/64 dev "+port+" nodad")
		}))
	}
	for _, n := range nodes {
		var peers []routes.Peer
		for _, other := range nodes {
			if other != n {
				peers = append(peers, other.peer)
			}
		}
		require.NoError(t, n.route(peers...))
	}
	return nodes, router
}

// send carries size bytes over TCP from one namespace to an address in another, and returns who the receiver saw.
func send(from, to *netnstest.Space, address netip.Addr, size int) (seen string, err error) {
	var listener net.Listener
	to.In(func() { listener, err = net.Listen("tcp", net.JoinHostPort(address.String(), "0")) })
	if err != nil {
		return "", err
	}
	defer listener.Close()
	type received struct {
		bytes int
		from  string
		err   error
	}
	got := make(chan received, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			got <- received{err: err}
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		b, err := io.ReadAll(conn)
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		got <- received{len(b), host, err}
	}()
	var conn net.Conn
	from.In(func() { conn, err = net.DialTimeout("tcp", listener.Addr().String(), 10*time.Second) })
	if err != nil {
		return "", err
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, err = conn.Write(bytes.Repeat([]byte("x"), size))
	err = errors.Join(err, conn.Close())
	r := <-got
	if err = errors.Join(err, r.err); err == nil && r.bytes != size {
		err = fmt.Errorf("%d of %d bytes came", r.bytes, size)
	}
	return r.from, err
}

// datagram sends one, unfragmented if it must be, a few times: the first may only teach the sender the path's MTU.
func datagram(from, to *netnstest.Space, address netip.Addr, size int) (err error) {
	var there net.PacketConn
	to.In(func() { there, err = net.ListenPacket("udp", net.JoinHostPort(address.String(), "0")) })
	if err != nil {
		return err
	}
	defer there.Close()
	var here net.Conn
	from.In(func() { here, err = net.Dial("udp", there.LocalAddr().String()) })
	if err != nil {
		return err
	}
	defer here.Close()
	buffer := make([]byte, 65535)
	for range 10 {
		if _, err = here.Write(make([]byte, size)); err != nil {
			continue
		}
		_ = there.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		n, _, rerr := there.ReadFrom(buffer)
		if err = rerr; err == nil && n != size {
			return fmt.Errorf("%d of %d bytes", n, size)
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// TestDualStackPods: pods have an address of each family, reach the pods of all nodes under it with packets of every size,
// by way of neighbours and through routers, and the world under their node's.
func TestDualStackPods(t *testing.T) {
	nodes, router := threeNodes(t)
	for i, n := range nodes {
		require.Equal(t, fmt.Sprintf("[10.244.%d.2 fd00:244:0:%d::2]", i+1, i+1), fmt.Sprint(n.ips))
	}
	for _, from := range nodes {
		for family, address := range from.ips {
			for _, to := range nodes {
				if from == to {
					continue
				}
				seen, err := send(from.pod, to.pod, to.ips[family], 1<<20)
				require.NoError(t, err, "%s to %s", address, to.ips[family])
				require.Equal(t, address.String(), seen, "pods keep their address among pods")
				for _, size := range []int{100, 1430, 1472, 8000} {
					require.NoError(t, datagram(from.pod, to.pod, to.ips[family], size), "%s to %s, %d bytes", address, to.ips[family], size)
				}
			}
			outside := []string{"192.0.2.1", "2001:db8:2::1"}[family]
			seen, err := send(from.pod, router, netip.MustParseAddr(outside), 100000)
			require.NoError(t, err)
			require.Equal(t, from.peer.Addresses[family].String(), seen, "the world sees the node")
		}
	}
}

// TestPodNetworkComesBack: somebody flushes the rules, or removes the configuration.
func TestPodNetworkComesBack(t *testing.T) {
	nodes, router := threeNodes(t)
	n := nodes[0]
	outside := netip.MustParseAddr("192.0.2.1")
	for _, damage := range []string{"nft flush ruleset", "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0"} {
		n.Run(damage)
		var err error
		n.In(func() { err = n.net.Repair(t.Context()) })
		require.NoError(t, err)
		seen, err := send(n.pod, router, outside, 1000)
		require.NoError(t, err)
		require.Equal(t, "192.0.2.11", seen)
	}
}

// TestBandwidth has the kernel hold a pod's limits, and takes them away with the pod.
func TestBandwidth(t *testing.T) {
	nodes, _ := threeNodes(t)
	n := nodes[0]
	second := netnstest.New(t, "second")
	bin := plugins(t, "bandwidth")
	require.NotEmpty(t, bin)
	pod := network.Pod{ID: "limited", NetNS: second.Path(), Annotations: map[string]string{
		"kubernetes.io/ingress-bandwidth": "8M", "kubernetes.io/egress-bandwidth": "16M",
	}}
	var ips []netip.Addr
	var err error
	n.In(func() { ips, err = n.net.Attach(t.Context(), pod) })
	if err != nil && strings.Contains(err.Error(), "ifb") {
		t.Skip("needs the kernel module ifb: ", err)
	}
	require.NoError(t, err)
	require.Equal(t, "[8000000 16000000]", fmt.Sprint(n.rates()))
	_, err = send(n.pod, second, ips[0], 100000)
	require.NoError(t, err)
	n.In(func() { err = n.net.Detach(t.Context(), network.Pod{ID: "limited", NetNS: second.Path()}) })
	require.NoError(t, err)
	require.Empty(t, n.rates())
	var links []netlink.Link
	n.In(func() { links, err = netlink.LinkList() })
	require.NoError(t, err)
	for _, l := range links {
		require.NotEqual(t, "ifb", l.Type(), "of the bandwidth plugin")
	}
}

// rates are those of the token buckets in the namespace, in bits per second, the smallest first.
func (n *nodeSpace) rates() (out []uint64) {
	n.In(func() {
		disciplines, err := netlink.QdiscList(nil)
		if err != nil {
			return
		}
		for _, q := range disciplines {
			if tbf, ok := q.(*netlink.Tbf); ok {
				out = append(out, tbf.Rate*8)
			}
		}
	})
	if len(out) == 2 && out[0] > out[1] {
		out[0], out[1] = out[1], out[0]
	}
	return out
}
