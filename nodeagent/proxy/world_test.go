package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"kontiki/internal/netnstest"
)

// world is a node, two of its pods and a client outside, each a network namespace:
//
//	pod1 10.244.0.11 ─┐
//	                  ├─ bridge 10.244.0.1 ─ node ─ 192.0.2.1 ── 192.0.2.2 client
//	pod2 10.244.0.12 ─┘
type world struct {
	t      *testing.T
	spaces map[string]*netnstest.Space
	client kubernetes.Interface
	proxy  *Proxy
	stop   func()
	// watches is how many have been started.
	watches atomic.Int32
}

// pods are where each pod of the world is.
var pods = map[string]string{"pod1": "10.244.0.11", "pod2": "10.244.0.12"}

func newWorld(t *testing.T) *world {
	client := fake.NewClientset()
	w := &world{t: t, spaces: map[string]*netnstest.Space{}, client: client}
	client.PrependWatchReactor("*", func(action kubetesting.Action) (bool, watch.Interface, error) {
		started, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		w.watches.Add(1)
		return true, started, err
	})
	for _, name := range []string{"node", "pod1", "pod2", "client"} {
		w.spaces[name] = netnstest.New(t, name, "nft")
	}
	node := w.spaces["node"]
	node.Run("ip link add bridge type bridge", "ip addr add 10.244.0.1/24 dev bridge", "ip link set bridge up")
	for name, address := range pods {
		node.Connect(name, w.spaces[name], "eth0")
		node.Run("ip link set "+name+" master bridge", "ip link set "+name+" type bridge_slave hairpin on")
		w.spaces[name].Run("ip addr add "+address+"/24 dev eth0", "ip route add default via 10.244.0.1")
	}
	node.Connect("outside", w.spaces["client"], "eth0")
	node.Run("ip addr add 192.0.2.1/24 dev outside", "ip route add default via 192.0.2.2")
	w.spaces["client"].Run("ip addr add 192.0.2.2/24 dev eth0", "ip route add 203.0.113.0/24 via 192.0.2.1")
	require.True(t, node.Set("net/ipv4/ip_forward", "1"))
	// Answers between pods on one bridge must come back through translation.
	if !node.Set("net/bridge/bridge-nf-call-iptables", "1") {
		t.Skip("needs the kernel module br_netfilter")
	}
	return w
}

// serve answers each line or datagram in a pod with the pod's name and whom it sees.
func (w *world) serve(pod string, port uint16) {
	address := fmt.Sprintf("%s:%d", pods[pod], port)
	var listener net.Listener
	var packets net.PacketConn
	var err, err2 error
	w.spaces[pod].In(func() {
		listener, err = net.Listen("tcp", address)
		packets, err2 = net.ListenPacket("udp", address)
	})
	require.NoError(w.t, errors.Join(err, err2))
	w.t.Cleanup(func() { listener.Close(); packets.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, pod, hostOf(conn.RemoteAddr()))
				}
			}()
		}
	}()
	go func() {
		buffer := make([]byte, 100)
		for {
			_, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo([]byte(pod+" "+hostOf(from)), from)
		}
	}()
}

func hostOf(a net.Addr) string {
	host, _, _ := net.SplitHostPort(a.String())
	return host
}

// dial connects from a namespace.
func (w *world) dial(from, network, to string) (conn net.Conn, err error) {
	w.spaces[from].In(func() { conn, err = net.DialTimeout(network, to, 2*time.Second) })
	return conn, err
}

// say sends a line on a connection and returns the answer.
func say(conn net.Conn) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(conn, "who?"); err != nil {
		return "", err
	}
	buffer := make([]byte, 100)
	n, err := conn.Read(buffer)
	return strings.TrimSpace(string(buffer[:n])), err
}

// ask asks once over a new connection.
func (w *world) ask(from, network, to string) (string, error) {
	conn, err := w.dial(from, network, to)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return say(conn)
}

// eventually asks until the answer is the wanted one.
func (w *world) eventually(want, from, network, to string) {
	w.t.Helper()
	var got string
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if got, err = w.ask(from, network, to); err == nil && got == want {
			return
		}
	}
	require.NoError(w.t, err, "%s to %s", from, to)
	require.Equal(w.t, want, got, "%s to %s", from, to)
}

// start runs a proxy on the node; stop ends it.
func (w *world) start() {
	factory := informers.NewSharedInformerFactory(w.client, 0)
	stopped := make(chan struct{})
	p, err := New(Config{
		Node: "node", ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, Informers: factory, Log: slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(w.t, err)
	w.proxy = p
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	before := w.watches.Load()
	factory.Start(ctx.Done())
	// The fake API loses what happens between a list and its watch.
	require.Eventually(w.t, func() bool { return w.watches.Load() >= before+3 }, time.Minute, time.Millisecond)
	go func() {
		defer close(stopped)
		w.spaces["node"].In(func() { _ = p.Run(ctx) })
	}()
	w.stop = func() {
		cancel()
		<-stopped
		factory.Shutdown()
	}
	w.t.Cleanup(w.stop)
}

// service puts a Service and the endpoints, each a pod and whether it is ready, into the cluster.
func (w *world) service(name string, spec corev1.ServiceSpec, ready map[string]bool) *corev1.Service {
	if len(spec.Ports) == 0 {
		spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}}
	}
	spec.ClusterIPs = []string{spec.ClusterIP}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
	_, err := w.client.CoreV1().Services("shop").Create(w.t.Context(), s, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = w.client.DiscoveryV1().EndpointSlices("shop").Create(w.t.Context(), sliceOf(s, ready), metav1.CreateOptions{})
	require.NoError(w.t, err)
	return s
}

func (w *world) endpoints(s *corev1.Service, ready map[string]bool) {
	_, err := w.client.DiscoveryV1().EndpointSlices("shop").Update(w.t.Context(), sliceOf(s, ready), metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func sliceOf(s *corev1.Service, ready map[string]bool) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: s.Name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, p := range s.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To(p.Name), Port: ptr.To(p.TargetPort.IntVal), Protocol: ptr.To(p.Protocol)})
	}
	for pod, isReady := range ready {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pods[pod]}, NodeName: ptr.To("node"), Conditions: discoveryv1.EndpointConditions{Ready: &isReady},
		})
	}
	return slice
}
