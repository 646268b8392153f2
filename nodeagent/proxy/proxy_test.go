package proxy

import (
	"errors"
	"maps"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var both = map[string]bool{"pod1": true, "pod2": true}

// TestClusterIP reaches Services from a pod and from the node, and is refused where there is nothing.
func TestClusterIP(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.serve("pod2", 8080)
	w.start()
	w.service("web", corev1.ServiceSpec{ClusterIP: "10.96.0.20"}, both)
	w.service("idle", corev1.ServiceSpec{ClusterIP: "10.96.0.21"}, map[string]bool{"pod1": false})
	w.service("one", corev1.ServiceSpec{ClusterIP: "10.96.0.22"}, map[string]bool{"pod2": true})

	w.eventually("pod2 10.244.0.11", "pod1", "tcp", "10.96.0.22:80") // the source is the client's own
	answers := map[string]int{}
	for range 40 {
		got, err := w.ask("node", "tcp", "10.96.0.20:80")
		require.NoError(t, err)
		answers[strings.Fields(got)[0]]++
	}
	require.Len(t, answers, 2, "both endpoints get some of 40 connections: %v", answers)

	for _, from := range []string{"pod1", "node"} {
		for _, to := range []string{"10.96.0.21:80", "10.96.0.20:81", "10.96.77.77:80"} {
			_, err := w.ask(from, "tcp", to)
			require.ErrorIs(t, err, syscall.ECONNREFUSED, "%s to %s", from, to)
		}
	}
}

// TestPodReachesItself_NW03 is a pod that is the only endpoint of the Service that it calls.
func TestPodReachesItself_NW03(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.start()
	w.service("self", corev1.ServiceSpec{
		ClusterIP: "10.96.0.20", Type: corev1.ServiceTypeNodePort,
		Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
	}, map[string]bool{"pod1": true})
	w.eventually("pod1 10.244.0.1", "pod1", "tcp", "10.96.0.20:80")
	w.eventually("pod1 10.244.0.1", "pod1", "tcp", "10.244.0.1:30080")
	w.stop()
	w.start()
	w.eventually("pod1 10.244.0.1", "pod1", "tcp", "10.96.0.20:80")
}

// TestFromOutside has a client that is no part of the cluster use each kind of address that a Service can have for it.
func TestFromOutside(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.serve("pod2", 8080)
	w.start()
	port := corev1.ServicePort{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}
	s := w.service("web", corev1.ServiceSpec{
		ClusterIP: "10.96.0.20", Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"203.0.113.5"},
		Ports: []corev1.ServicePort{port},
	}, map[string]bool{"pod1": true})
	update := func(change func(*corev1.Service)) {
		change(s)
		_, err := w.client.CoreV1().Services("shop").Update(t.Context(), s, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	w.eventually("pod1 10.244.0.1", "client", "tcp", "192.0.2.1:30080") // policy Cluster hides the source
	w.eventually("pod1 10.244.0.1", "client", "tcp", "203.0.113.5:80")
	update(func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.6"}}
	})
	w.eventually("pod1 10.244.0.1", "client", "tcp", "203.0.113.6:80")

	update(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"} })
	w.never("client", "203.0.113.6:80")
	update(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24", "192.0.2.0/24"} })
	w.eventually("pod1 10.244.0.1", "client", "tcp", "203.0.113.6:80")

	update(func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = 30999
	})
	for _, to := range []string{"192.0.2.1:30080", "203.0.113.5:80", "203.0.113.6:80"} {
		w.eventually("pod1 192.0.2.2", "client", "tcp", to) // Local keeps the source
	}
	w.never("pod2", "203.0.113.6:80") // pods are in no source range
	update(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = nil })
	w.eventually("pod1 10.244.0.12", "pod2", "tcp", "203.0.113.6:80")
	require.Contains(t, w.health(), "200 OK")
	w.endpoints(s, map[string]bool{})
	w.never("client", "192.0.2.1:30080")
	require.Eventually(t, func() bool { return strings.Contains(w.health(), "503") }, time.Minute, 20*time.Millisecond)

	require.NoError(t, w.client.CoreV1().Services("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := w.ask("client", "tcp", "192.0.2.1:30080")
		return errors.Is(err, syscall.ECONNREFUSED)
	}, time.Minute, 20*time.Millisecond, "the port is the node's again")
}

// never waits until connections stay without an answer.
func (w *world) never(from, to string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := w.ask(from, "tcp", to)
		var timeout net.Error
		return errors.As(err, &timeout) && timeout.Timeout()
	}, time.Minute, 20*time.Millisecond, "%s reaches %s", from, to)
}

// health is the head of what a load balancer hears.
func (w *world) health() string {
	conn, err := w.dial("client", "tcp", "192.0.2.1:30999")
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET /healthz HTTP/1.0\r\n\r\n"))
	buffer := make([]byte, 40)
	n, _ := conn.Read(buffer)
	return string(buffer[:n])
}

// TestInternalTrafficPolicyLocal has pods see the endpoints of their own node alone.
func TestInternalTrafficPolicyLocal(t *testing.T) {
	w := newWorld(t)
	w.serve("pod2", 8080)
	w.start()
	s := w.service("web", corev1.ServiceSpec{
		ClusterIP: "10.96.0.20", InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal),
	}, map[string]bool{"pod2": true})
	w.eventually("pod2 10.244.0.11", "pod1", "tcp", "10.96.0.20:80")
	elsewhere := sliceOf(s, map[string]bool{"pod2": true})
	elsewhere.Endpoints[0].NodeName = ptr.To("other")
	_, err := w.client.DiscoveryV1().EndpointSlices("shop").Update(t.Context(), elsewhere, metav1.UpdateOptions{})
	require.NoError(t, err)
	w.never("pod1", "10.96.0.20:80")
}

// TestLabelsKeepOff takes a slice, and then a Service, away from the proxy by the labels that Kubernetes has for it.
func TestLabelsKeepOff(t *testing.T) {
	w := newWorld(t)
	w.serve("pod2", 8080)
	w.start()
	s := w.service("web", corev1.ServiceSpec{ClusterIP: "10.96.0.20"}, map[string]bool{"pod2": true})
	w.eventually("pod2 10.244.0.11", "pod1", "tcp", "10.96.0.20:80")
	label := func(slice, service map[string]string) {
		labelled := sliceOf(s, map[string]bool{"pod2": true})
		maps.Copy(labelled.Labels, slice)
		_, err := w.client.DiscoveryV1().EndpointSlices("shop").Update(t.Context(), labelled, metav1.UpdateOptions{})
		require.NoError(t, err)
		s.Labels = service
		_, err = w.client.CoreV1().Services("shop").Update(t.Context(), s, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	unanswered := func() {
		require.Eventually(t, func() bool {
			_, err := w.ask("pod1", "tcp", "10.96.0.20:80")
			return err != nil
		}, time.Minute, 20*time.Millisecond)
	}
	for _, name := range []string{corev1.IsHeadlessService, "service.kubernetes.io/service-proxy-name"} {
		label(map[string]string{name: ""}, nil)
		unanswered()
		label(nil, nil)
		w.eventually("pod2 10.244.0.11", "pod1", "tcp", "10.96.0.20:80")
		label(nil, map[string]string{name: ""})
		unanswered()
		label(nil, nil)
		w.eventually("pod2 10.244.0.11", "pod1", "tcp", "10.96.0.20:80")
	}
}

// TestRestart_NW06 restarts the proxy five times under an open connection and a UDP flow.
func TestRestart_NW06(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.serve("pod2", 8080)
	w.start()
	ports := []corev1.ServicePort{
		{Name: "tcp", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)},
		{Name: "udp", Port: 80, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(8080)},
	}
	w.service("web", corev1.ServiceSpec{ClusterIP: "10.96.0.20", Ports: ports}, both)
	for _, network := range []string{"tcp", "udp"} {
		require.Eventually(t, func() bool { _, err := w.ask("pod1", network, "10.96.0.20:80"); return err == nil }, time.Minute, 20*time.Millisecond)
	}
	var first [2]string
	var conns [2]net.Conn
	for i, network := range []string{"tcp", "udp"} {
		conn, err := w.dial("pod1", network, "10.96.0.20:80")
		require.NoError(t, err)
		defer conn.Close()
		conns[i] = conn
		first[i], err = say(conn)
		require.NoError(t, err)
	}
	for range 5 {
		w.stop()
		w.start()
		for i, conn := range conns {
			got, err := say(conn)
			require.NoError(t, err)
			require.Equal(t, first[i], got)
		}
	}
}

// TestStaleFlows_NW05 has a client that sends from one port for ever, while the Service's endpoints come, go and change.
func TestStaleFlows_NW05(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.serve("pod2", 8080)
	w.start()
	s := w.service("dns", corev1.ServiceSpec{
		ClusterIP: "10.96.0.20", Type: corev1.ServiceTypeNodePort,
		Ports: []corev1.ServicePort{{Port: 53, NodePort: 30053, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(8080)}},
	}, map[string]bool{})
	inside, err := w.dial("pod1", "udp", "10.96.0.20:53")
	require.NoError(t, err)
	defer inside.Close()
	outside, err := w.dial("client", "udp", "192.0.2.1:30053")
	require.NoError(t, err)
	defer outside.Close()
	for _, step := range []struct {
		ready map[string]bool
		want  string
	}{{map[string]bool{"pod1": true}, "pod1"}, {map[string]bool{"pod2": true}, "pod2"}, {nil, ""}, {map[string]bool{"pod1": true}, "pod1"}} {
		w.endpoints(s, step.ready)
		for _, conn := range []net.Conn{inside, outside} {
			require.Eventually(t, func() bool {
				got, err := say(conn)
				return step.want == "" && err != nil || step.want != "" && strings.HasPrefix(got, step.want)
			}, time.Minute, 20*time.Millisecond, "%v", step)
		}
	}
	require.NoError(t, w.client.CoreV1().Services("shop").Delete(t.Context(), "dns", metav1.DeleteOptions{}))
	for _, conn := range []net.Conn{inside, outside} {
		require.Eventually(t, func() bool { _, err := say(conn); return err != nil }, time.Minute, 20*time.Millisecond, "nobody hears it any more")
	}
}

// TestSessionAffinity_NW07 keeps a client at one endpoint, until that is not ready or the time is over.
func TestSessionAffinity_NW07(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.serve("pod2", 8080)
	w.start()
	s := w.service("web", corev1.ServiceSpec{
		ClusterIP: "10.96.0.20", SessionAffinity: corev1.ServiceAffinityClientIP,
		SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10)}},
	}, both)
	var first string
	require.Eventually(t, func() (ok bool) {
		var err error
		first, err = w.ask("node", "tcp", "10.96.0.20:80")
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	for range 30 {
		got, err := w.ask("node", "tcp", "10.96.0.20:80")
		require.NoError(t, err)
		require.Equal(t, first, got)
	}
	other := "pod1"
	if strings.HasPrefix(first, other) {
		other = "pod2"
	}
	w.endpoints(s, map[string]bool{"pod1": other == "pod1", "pod2": other == "pod2"})
	require.Eventually(t, func() bool {
		got, err := w.ask("node", "tcp", "10.96.0.20:80")
		return err == nil && strings.HasPrefix(got, other)
	}, time.Minute, 20*time.Millisecond)
}
