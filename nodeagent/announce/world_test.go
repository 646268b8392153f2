package announce_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"kontiki/internal/loadbalancer"
	"kontiki/internal/netnstest"
	"kontiki/nodeagent/announce"
	"kontiki/nodeagent/proxy"
)

// street is three nodes and a client outside the cluster in one network of both IP families. Each node has Service rules, an
// announcer, and an endpoint that says where it is and whom it sees.
//
//	client 192.0.2.200 ─┬─ n1 192.0.2.11   endpoint 10.244.1.5:8080
//	                    ├─ n2 192.0.2.12   endpoint 10.244.2.5:8080
//	                    └─ n3 192.0.2.13   endpoint 10.244.3.5:8080
type street struct {
	t      *testing.T
	api    kubernetes.Interface
	client *netnstest.Space
	nodes  map[string]*netnstest.Space
	stops  map[string]func() // of a node's agent
}

func newStreet(t *testing.T) *street {
	s := &street{t: t, api: fake.NewClientset(), client: netnstest.New(t, "client"), nodes: map[string]*netnstest.Space{}, stops: map[string]func(){}}
	lan := netnstest.New(t, "lan")
	lan.Run("ip link add lan type bridge", "ip link set lan up")
	join := func(space *netnstest.Space, name string, number int) {
		space.Connect("eth0", lan, name)
		lan.Run("ip link set " + name + " master lan")
		space.Run(fmt.Sprintf("ip addr add 192.0.2.%d/24 dev eth0", number), fmt.Sprintf("ip addr add 2001:db8::%d/64 dev eth0 nodad", number))
	}
	join(s.client, "client", 200)
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("n%d", i)
		space := netnstest.New(t, name, "nft")
		s.nodes[name] = space
		join(space, name, 10+i)
		require.True(t, space.Set("net/ipv4/ip_forward", "1"))
		if !space.Set("net/ipv6/conf/all/forwarding", "1") {
			t.Skip("needs IPv6")
		}
		space.Run(fmt.Sprintf("ip addr add 10.244.%d.5/32 dev lo", i), fmt.Sprintf("ip addr add fd00:244:%d::5/128 dev lo nodad", i))
		for j := 1; j <= 3; j++ {
			if j != i {
				space.Run(fmt.Sprintf("ip route add 10.244.%d.0/24 via 192.0.2.%d", j, 10+j), fmt.Sprintf("ip route add fd00:244:%d::/64 via 2001:db8::%d", j, 10+j))
			}
		}
		s.serve(name, fmt.Sprintf("10.244.%d.5:8080", i))
		s.serve(name, fmt.Sprintf("[fd00:244:%d::5]:8080", i))
		_, err := s.api.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = s.api.CoordinationV1().Leases("kube-node-lease").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		s.start(name)
	}
	t.Cleanup(func() {
		for _, stop := range s.stops {
			stop()
		}
	})
	return s
}

func (s *street) serve(name, address string) {
	var listener net.Listener
	var err error
	s.nodes[name].In(func() { listener, err = net.Listen("tcp", address) })
	require.NoError(s.t, err)
	s.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			fmt.Fprint(conn, name, " sees ", host)
			conn.Close()
		}
	}()
}

// start runs a node's agent, as far as it matters here.
func (s *street) start(name string) {
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(s.api, 0)
	a, err := announce.New(announce.Config{Node: name, Client: s.api, Informers: factory})
	require.NoError(s.t, err)
	p, err := proxy.New(proxy.Config{
		Node: name, Informers: factory,
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/112")},
		PodCIDRs:     []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32")},
		Log:          slog.New(slog.DiscardHandler),
	})
	require.NoError(s.t, err)
	factory.Start(ctx.Done())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{a.Run, p.Run} {
		running.Go(func() { s.nodes[name].In(func() { _ = run(ctx) }) })
	}
	s.stops[name] = sync.OnceFunc(func() { cancel(); running.Wait(); factory.Shutdown() })
}

// service makes a Service with endpoints on the named nodes.
func (s *street) service(name string, number int, policy corev1.ServiceExternalTrafficPolicy, nodes ...string) {
	ingress := []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("192.0.2.%d", number)}, {IP: fmt.Sprintf("2001:db8::%d", number)}}
	_, err := s.api.CoreV1().Services("ns").Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: policy,
			ClusterIP: fmt.Sprintf("10.96.0.%d", number), ClusterIPs: []string{fmt.Sprintf("10.96.0.%d", number), fmt.Sprintf("fd00:96::%d", number)},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			Ports:      []corev1.ServicePort{{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP}},
		},
		Status: corev1.ServiceStatus{
			LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress},
			Conditions:   []metav1.Condition{{Type: loadbalancer.Assigned, Status: metav1.ConditionTrue}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.endpoints(name, nodes...)
}

// endpoints says on which nodes a Service has its endpoints now.
func (s *street) endpoints(name string, nodes ...string) {
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: name + strings.ToLower(string(family)), Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: name},
			},
			AddressType: family,
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("web"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}},
		}
		for _, node := range nodes {
			address := "10.244." + node[1:] + ".5"
			if family == discoveryv1.AddressTypeIPv6 {
				address = "fd00:244:" + node[1:] + "::5"
			}
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{address}, NodeName: ptr.To(node), Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			})
		}
		slices := s.api.DiscoveryV1().EndpointSlices("ns")
		_, err := slices.Create(s.t.Context(), slice, metav1.CreateOptions{})
		if err != nil {
			_, err = slices.Update(s.t.Context(), slice, metav1.UpdateOptions{})
		}
		require.NoError(s.t, err)
	}
}

// ask is what the client hears at an address.
func (s *street) ask(address string) (answer string, err error) {
	var conn net.Conn
	s.client.In(func() { conn, err = net.DialTimeout("tcp", net.JoinHostPort(address, "80"), time.Second) })
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	b, err := io.ReadAll(conn)
	return string(b), err
}

// hears waits until the client hears an answer that holds.
func (s *street) hears(address string, holds func(string) bool) {
	s.t.Helper()
	var answer string
	var err error
	require.Eventually(s.t, func() bool {
		answer, err = s.ask(address)
		return err == nil && holds(answer)
	}, time.Minute, 100*time.Millisecond)
}

// whoHas is the nodes whose kernel has an address.
func (s *street) whoHas(address string) (out string) {
	for name, node := range s.nodes {
		node.In(func() {
			addresses, err := net.InterfaceAddrs()
			for _, a := range addresses {
				if err == nil && a.(*net.IPNet).IP.Equal(net.ParseIP(address)) {
					out += name
				}
			}
		})
	}
	return out
}

// TestAddressesAreAnswered: a client outside reaches the addresses of a Service of both families; when the node that answers
// dies another does, and the dead one's kernel has given them up; with externalTrafficPolicy Local the node is one that has
// an endpoint, moves with it, and the endpoint sees the client.
func TestAddressesAreAnswered(t *testing.T) {
	s := newStreet(t)
	s.service("everywhere", 101, corev1.ServiceExternalTrafficPolicyCluster, "n1", "n2", "n3")
	s.service("local", 102, corev1.ServiceExternalTrafficPolicyLocal, "n2")
	addresses := map[string]string{"192.0.2.": "192.0.2.200", "2001:db8::": "2001:db8::200"}
	for prefix, client := range addresses {
		s.hears(prefix+"101", func(a string) bool { return a != "" })
		s.hears(prefix+"102", func(a string) bool { return a == "n2 sees "+client })
		require.Equal(t, "n2", s.whoHas(prefix+"102"))
	}

	// The endpoint moves to another node, and the address with it.
	s.endpoints("local", "n3")
	for prefix, client := range addresses {
		s.hears(prefix+"102", func(a string) bool { return a == "n3 sees "+client })
		require.Eventually(t, func() bool { return s.whoHas(prefix+"102") == "n3" }, time.Minute, 50*time.Millisecond)
	}

	// The agents of the nodes that answer are gone from one moment to the other, as with kill -9: nothing is handed over.
	dead := map[string]bool{}
	for prefix := range addresses {
		name := s.whoHas(prefix + "101")
		require.NotEmpty(t, name)
		dead[name] = true
		s.stops[name]()
	}
	for prefix := range addresses {
		require.Eventually(t, func() bool {
			name := s.whoHas(prefix + "101")
			return s.nodes[name] != nil && !dead[name]
		}, time.Minute, 50*time.Millisecond, prefix)
		s.hears(prefix+"101", func(a string) bool { return a != "" })
	}
}
