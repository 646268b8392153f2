package proxy

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestFrontend reads from a Service what is easily misread.
func TestFrontend(t *testing.T) {
	service := func(change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1", "fd00::1"}}}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.1"}, {IP: "203.0.113.2", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)}, {Hostname: "lb"}}
		change(s)
		return s
	}
	port := corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP}
	f, ok := frontendOf(service(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }), port, false)
	require.True(t, ok)
	require.Equal(t, 10800*time.Second, f.affinity, "three hours, in seconds (NW-07)")
	require.Equal(t, []netip.Addr{netip.MustParseAddr("203.0.113.1")}, f.balanced, "to a load balancer of mode Proxy packets have to go")

	f, ok = frontendOf(service(func(*corev1.Service) {}), port, true)
	require.True(t, ok)
	require.Equal(t, netip.MustParseAddr("fd00::1"), f.cluster)
	require.Empty(t, f.balanced)
	require.Zero(t, f.affinity)

	_, ok = frontendOf(service(func(s *corev1.Service) { s.Spec.ClusterIPs = s.Spec.ClusterIPs[:1] }), port, true)
	require.False(t, ok, "no address of the family")

	ranges := service(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{" 192.0.2.7/24", "2001:db8::/32"} })
	f, _ = frontendOf(ranges, port, false)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, f.sources)
	ranges.Spec.LoadBalancerSourceRanges = []string{"2001:db8::/32"}
	f, _ = frontendOf(ranges, port, false)
	require.Empty(t, f.balanced, "ranges of the other family let nobody of this one in")
}
