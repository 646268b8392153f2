package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/netnstest"
	"kontiki/internal/policypeers"
)

// world is two nodes with two pods each and a machine outside, each a network namespace, with IPv4 and IPv6:
//
//	web1 10.244.1.11 ─┐                                   ┌─ web2 10.244.2.11
//	                  ├─ node1 ── 192.0.2.0/24 ── node2 ──┤
//	db1  10.244.1.12 ─┘     └── 198.51.100.2 outside      └─ db2  10.244.2.12
//
// web1 and db2 are in namespace shop (team a), db1 and web2 in back (team b).
type world struct {
	t          *testing.T
	spaces     map[string]*netnstest.Space
	hosts      map[string]*host
	namespaces map[string]*corev1.Namespace
	nodes      map[string]*Enforcer

	mu      sync.Mutex         // guards what follows
	arrived map[string]bool    // probes that came to where they were sent
	echoed  map[string]bool    // their answers that came back
	clients map[string]*sender // UDP sockets by host and family: flows go on from step to step
}

// hostNames in the order in which they are reported.
var hostNames = []string{"web1", "db1", "web2", "db2", "outside"}

// ports that all hosts listen at. The port that a pod calls "api" is the first of web pods and the second of others.
var ports = []int32{80, 8080}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, spaces: map[string]*netnstest.Space{}, hosts: map[string]*host{}, nodes: map[string]*Enforcer{}, namespaces: map[string]*corev1.Namespace{},
		arrived: map[string]bool{}, echoed: map[string]bool{}, clients: map[string]*sender{},
	}
	for _, name := range append([]string{"node1", "node2"}, hostNames...) {
		w.spaces[name] = netnstest.New(t, name, "nft")
	}
	for name, team := range map[string]string{"shop": "a", "back": "b"} {
		w.namespaces[name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	for n := 1; n <= 2; n++ {
		w.addNode(n)
	}
	w.spaces["node1"].Connect("peer", w.spaces["node2"], "peer")
	for n := 1; n <= 2; n++ {
		other := 3 - n
		w.spaces[fmt.Sprint("node", n)].Run(
			fmt.Sprintf("ip addr add 192.0.2.%d/24 dev peer", n), fmt.Sprintf("ip addr add fd00:2::%d/64 dev peer nodad", n),
			fmt.Sprintf("ip route add 10.244.%d.0/24 via 192.0.2.%d", other, other), fmt.Sprintf("ip route add fd00:244:%d::/64 via fd00:2::%d", other, other))
	}
	w.spaces["node2"].Run("ip route add 198.51.100.0/24 via 192.0.2.1", "ip route add fd00:51::/64 via fd00:2::1")
	w.spaces["node1"].Connect("outside", w.spaces["outside"], "eth0")
	w.spaces["node1"].Run("ip addr add 198.51.100.1/24 dev outside", "ip addr add fd00:51::1/64 dev outside nodad")
	w.hosts["outside"] = &host{name: "outside", node: "node1", addresses: []string{"198.51.100.2", "fd00:51::2"}}
	w.address("outside", "198.51.100.1", "fd00:51::1")
	for _, name := range hostNames {
		w.listen(name, ports...)
	}
	return w
}

// addNode makes a node with its two pods.
func (w *world) addNode(n int) {
	name := fmt.Sprint("node", n)
	node := w.spaces[name]
	node.Run("ip link add bridge type bridge", fmt.Sprintf("ip addr add 10.244.%d.1/24 dev bridge", n),
		fmt.Sprintf("ip addr add fd00:244:%d::1/64 dev bridge nodad", n), "ip link set bridge up")
	for _, path := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
		require.True(w.t, node.Set(path, "1"), path)
	}
	for _, path := range []string{"net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"} {
		if !node.Set(path, "1") {
			w.t.Skip("needs the kernel module br_netfilter")
		}
	}
	for i, app := range []string{"web", "db"} {
		pod := fmt.Sprint(app, n)
		namespace := []string{"shop", "back"}[(i+n+1)%2]
		addresses := []string{fmt.Sprintf("10.244.%d.%d", n, 11+i), fmt.Sprintf("fd00:244:%d::%d", n, 11+i)}
		w.hosts[pod] = &host{name: pod, node: name, addresses: addresses, namespace: w.namespaces[namespace], pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, UID: types.UID("uid-" + pod), Labels: map[string]string{"app": app}},
			Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{
				{Name: "api", ContainerPort: ports[i], Protocol: corev1.ProtocolUDP}, {Name: "api", ContainerPort: ports[i], Protocol: corev1.ProtocolTCP},
			}}}},
			Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: addresses[0]}, {IP: addresses[1]}}},
		}}
		node.Connect(pod, w.spaces[pod], "eth0")
		node.Run("ip link set "+pod+" master bridge", "ip link set "+pod+" type bridge_slave hairpin on")
		w.address(pod, fmt.Sprintf("10.244.%d.1", n), fmt.Sprintf("fd00:244:%d::1", n))
	}
	w.listen(name)
	w.nodes[name] = w.enforcer(name)
}

// address gives a host its addresses, and routes by way of a gateway.
func (w *world) address(name, gateway4, gateway6 string) {
	h := w.hosts[name]
	w.spaces[name].Run("ip addr add "+h.addresses[0]+"/24 dev eth0", "ip addr add "+h.addresses[1]+"/64 dev eth0 nodad",
		"ip route add default via "+gateway4, "ip -6 route add default via "+gateway6)
}

// enforcer is one of a node that is stepped by the test instead of running.
func (w *world) enforcer(node string) *Enforcer {
	indexer := func(more cache.Indexers) cache.Indexer {
		more[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, more)
	}
	var e *Enforcer
	w.spaces[node].In(func() {
		table, err := openTable()
		if err != nil {
			return
		}
		e = newEnforcer(Config{Log: slog.New(slog.NewTextHandler(w.t.Output(), nil))}, table)
	})
	require.NotNil(w.t, e, "nft works")
	e.pods, e.policies = indexer(cache.Indexers{byUID: indexByUID}), indexer(cache.Indexers{byUID: indexByUID})
	e.slices = indexer(cache.Indexers{policypeers.ByPolicy: policypeers.IndexByPolicy})
	for _, h := range w.hosts {
		if h.node == node && h.pod != nil {
			require.NoError(w.t, e.pods.Add(h.pod))
			e.addresses.give(h.pod.UID, parsed(h.addresses))
		}
	}
	return e
}

func parsed(texts []string) (addresses []netip.Addr) {
	for _, text := range texts {
		addresses = append(addresses, netip.MustParseAddr(text))
	}
	return addresses
}

// Namespaces and PodsOf are the cluster as the controller sees it.
func (w *world) Namespaces() (all []*corev1.Namespace) {
	for _, n := range w.namespaces {
		all = append(all, n)
	}
	return all
}

func (w *world) PodsOf(namespace string) (all []*corev1.Pod) {
	for _, h := range w.hosts {
		if h.pod != nil && h.pod.Namespace == namespace {
			all = append(all, h.pod)
		}
	}
	return all
}

// enforce has all nodes know these policies, with their peers, and write what changes.
func (w *world) enforce(policies model) {
	w.t.Helper()
	var peers []any
	for _, p := range policies {
		for _, selection := range policypeers.Of(p) {
			for i, g := range selection.Resolve(w) {
				slice := &discoveryv1.EndpointSlice{
					ObjectMeta:  metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprint(p.Name, selection.Key, i), Labels: policypeers.Labels(p.UID, selection)},
					AddressType: g.AddressType(), Ports: g.Ports,
				}
				for _, a := range g.Addresses {
					slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.String()}})
				}
				peers = append(peers, slice)
			}
		}
	}
	for name, e := range w.nodes {
		b := newBatch()
		for _, obj := range append(e.policies.List(), asObjects(policies)...) {
			p := obj.(*networkingv1.NetworkPolicy)
			b.policies[keyOf(p)], b.peers[p.UID] = true, true
		}
		require.NoError(w.t, e.policies.Replace(asObjects(policies), ""))
		require.NoError(w.t, e.slices.Replace(peers, ""))
		w.sync(name, b)
	}
}

func asObjects(policies model) (objects []any) {
	for _, p := range policies {
		objects = append(objects, p)
	}
	return objects
}

// sync has a node write what changed.
func (w *world) sync(node string, b *batch) {
	w.t.Helper()
	var err error
	w.spaces[node].In(func() { err = w.nodes[node].sync(w.t.Context(), b) })
	require.NoError(w.t, err)
}

// probe is a packet, or a connection, that is tried.
type probe struct {
	from, to *host
	family   int
	network  string // "udp" or "tcp"
	port     int32
}

func (p probe) String() string {
	return fmt.Sprintf("%s→%s %s:%d v%d", p.from.name, p.to.name, p.network, p.port, 4+2*p.family)
}

func (p probe) target() string {
	return net.JoinHostPort(p.to.addresses[p.family], strconv.Itoa(int(p.port)))
}

// allProbes are every pair of hosts, both families, UDP to both ports and TCP to one.
func (w *world) allProbes() (all []probe) {
	for _, from := range hostNames {
		for _, to := range hostNames {
			for family := range 2 {
				all = append(all, probe{w.hosts[from], w.hosts[to], family, "udp", ports[0]}, probe{w.hosts[from], w.hosts[to], family, "udp", ports[1]})
				if to != "outside" || from != "outside" {
					all = append(all, probe{w.hosts[from], w.hosts[to], family, "tcp", ports[0]})
				}
			}
		}
	}
	return all
}

// listen has a host answer at ports and, at fencePort, echo what fences need.
func (w *world) listen(name string, ports ...int32) {
	for _, port := range append(ports, fencePort) {
		var packets net.PacketConn
		var conns net.Listener
		var err, err2 error
		w.spaces[name].In(func() {
			packets, err = net.ListenPacket("udp", fmt.Sprintf(":%d", port))
			conns, err2 = net.Listen("tcp", fmt.Sprintf(":%d", port))
		})
		require.NoError(w.t, errors.Join(err, err2))
		w.t.Cleanup(func() { packets.Close(); conns.Close() })
		go w.echo(packets)
		go w.accept(conns)
	}
}

// echo notes and answers datagrams until it is closed.
func (w *world) echo(packets net.PacketConn) {
	buffer := make([]byte, 200)
	for {
		n, from, err := packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		w.note(w.arrived, string(buffer[:n]))
		_, _ = packets.WriteTo(buffer[:n], from)
	}
}

// accept notes and answers lines until it is closed.
func (w *world) accept(conns net.Listener) {
	for {
		conn, err := conns.Accept()
		if err != nil {
			return
		}
		w.t.Cleanup(func() { conn.Close() })
		go func() {
			buffer := make([]byte, 200)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					return
				}
				for _, id := range bytes.Fields(buffer[:n]) {
					w.note(w.arrived, string(id))
				}
				_, _ = conn.Write(buffer[:n])
			}
		}()
	}
}

func (w *world) note(in map[string]bool, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in[id] = true
}

func (w *world) noted(in map[string]bool, id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return in[id]
}

// sender is a UDP socket that notes what it hears.
type sender struct{ net.PacketConn }

// sender returns the one socket of a host and family.
func (w *world) sender(name string, family int) *sender {
	key := fmt.Sprint(name, family)
	if s := w.clients[key]; s != nil {
		return s
	}
	var packets net.PacketConn
	var err error
	w.spaces[name].In(func() { packets, err = net.ListenPacket([]string{"udp4", "udp6"}[family], "") })
	require.NoError(w.t, err)
	w.t.Cleanup(func() { packets.Close() })
	w.clients[key] = &sender{packets}
	go func() {
		buffer := make([]byte, 200)
		for {
			n, _, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			w.note(w.echoed, string(buffer[:n]))
		}
	}()
	return w.clients[key]
}

func (w *world) send(name string, family int, to, id string) {
	w.t.Helper()
	address, err := net.ResolveUDPAddr("udp", to)
	require.NoError(w.t, err)
	_, err = w.sender(name, family).WriteTo([]byte(id), address)
	require.NoError(w.t, err)
}

// patience bounds what must come. Nothing that is tested depends on its length.
const patience = time.Minute

// fencePort is open on all hosts, nodes included.
const fencePort = 9

// fences waits until whatever was sent before has arrived, if it ever does: what follows it by the same ways has. First
// from every host to its node, then between the nodes, then from the nodes to their hosts, none of which is judged.
func (w *world) fences(step string) {
	w.t.Helper()
	var first, last []func() string
	for _, h := range w.hosts {
		for family := range 2 {
			gateway := w.gateway(h, family)
			first = append(first, func() string { return w.fence(step, h.name, family, gateway) })
			last = append(last, func() string { return w.fence(step, h.node, family, h.addresses[family]) })
		}
	}
	between := []func() string{}
	for family, address := range []string{"192.0.2.2", "fd00:2::2"} {
		between = append(between, func() string { return w.fence(step, "node1", family, address) })
	}
	for _, stage := range [][]func() string{first, between, last} {
		waiting := map[string]func() string{}
		for _, send := range stage {
			waiting[send()] = send
		}
		w.await(func() bool {
			for id, send := range waiting {
				if w.noted(w.echoed, id) {
					delete(waiting, id)
				} else {
					send()
				}
			}
			return len(waiting) == 0
		}, func() string { return fmt.Sprint("fences are missing: ", waiting) })
	}
}

func (w *world) gateway(h *host, family int) string {
	if h.pod == nil {
		return []string{"198.51.100.1", "fd00:51::1"}[family]
	}
	return []string{"10.244." + h.node[4:] + ".1", "fd00:244:" + h.node[4:] + "::1"}[family]
}

func (w *world) fence(step, from string, family int, to string) string {
	id := strings.Join([]string{"fence", step, from, to}, "/")
	w.send(from, family, net.JoinHostPort(to, strconv.Itoa(fencePort)), id)
	return id
}

// await polls until something is so.
func (w *world) await(holds func() bool, seen func() string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			require.FailNow(w.t, "not within a minute: "+seen())
		}
		time.Sleep(2 * time.Millisecond) // a poll
	}
}

// connect dials until ctx ends, and says its id on the connection.
func (w *world) connect(ctx context.Context, p probe, id string) {
	var conn net.Conn
	var err error
	w.spaces[p.from.name].In(func() { conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", p.target()) })
	if err != nil {
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := conn.Write([]byte(id + "\n")); err != nil {
		return
	}
	buffer := make([]byte, 200)
	if n, err := conn.Read(buffer); err == nil {
		w.note(w.echoed, strings.TrimSpace(string(buffer[:n])))
	}
}

// judge tries probes and requires that those that the model allows arrive and are answered, and no others.
func (w *world) judge(step string, policies model, probes []probe) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var dialing sync.WaitGroup
	defer dialing.Wait()
	defer cancel()
	id := func(p probe) string { return strings.ReplaceAll(step+"/"+p.String(), " ", "/") }
	var allowed, denied []probe
	for _, p := range probes {
		protocol := corev1.Protocol(strings.ToUpper(p.network))
		if policies.allows(p.from, p.to, p.family, protocol, p.port) {
			allowed = append(allowed, p)
		} else {
			denied = append(denied, p)
		}
		if p.network == "tcp" {
			dialing.Go(func() { w.connect(ctx, p, id(p)) })
		} else {
			w.send(p.from.name, p.family, p.target(), id(p))
		}
	}
	var missing []probe
	w.await(func() bool {
		missing = nil
		for _, p := range allowed {
			if !w.noted(w.arrived, id(p)) || !w.noted(w.echoed, id(p)) {
				missing = append(missing, p)
			}
		}
		return len(missing) == 0
	}, func() string {
		return fmt.Sprintf("%s: allowed, but blocked: %v\n%s", step, missing, describe(policies))
	})
	w.fences(step)
	for _, p := range denied {
		require.False(w.t, w.noted(w.arrived, id(p)), "%s: denied, but arrived: %v\n%s", step, p, describe(policies))
	}
}
