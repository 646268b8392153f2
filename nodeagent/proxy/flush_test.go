package proxy

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestFlushed has somebody take the rules away, in one way and another: they come back, and what was open goes on.
func TestFlushed(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.start()
	ports := []corev1.ServicePort{
		{Name: "tcp", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)},
		{Name: "udp", Port: 80, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(8080)},
	}
	w.service("web", corev1.ServiceSpec{ClusterIP: "10.96.0.20", Ports: ports}, map[string]bool{"pod1": true})
	const answer = "pod1 10.244.0.12"
	w.eventually(answer, "pod2", "udp", "10.96.0.20:80")
	open := map[string]net.Conn{}
	for _, network := range []string{"tcp", "udp"} {
		conn, err := w.dial("pod2", network, "10.96.0.20:80")
		require.NoError(t, err)
		defer conn.Close()
		open[network] = conn
		got, err := say(conn)
		require.NoError(t, err)
		require.Equal(t, answer, got)
	}
	for _, damage := range []string{"nft flush ruleset", "nft delete table ip kontiki-services", "nft flush table ip kontiki-services"} {
		w.spaces["node"].Run(damage)
		w.eventually(answer, "pod2", "tcp", "10.96.0.20:80")
		got, err := say(open["tcp"])
		require.NoError(t, err, damage)
		require.Equal(t, answer, got, damage)
		require.Eventually(t, func() bool { // flows that could not be translated meanwhile are forgotten
			got, err := say(open["udp"])
			return err == nil && got == answer
		}, time.Minute, 20*time.Millisecond, damage)
	}
	w.stop()
	select {
	case <-w.proxy.Written():
	default:
		require.Fail(t, "it says that nothing was ever written")
	}
}
