package policy

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"

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
	reported   func(error) // what an enforcer that runs reports

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
	e := newEnforcer(Config{Log: slog.New(slog.NewTextHandler(w.t.Output(), nil))}, openTable())
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
