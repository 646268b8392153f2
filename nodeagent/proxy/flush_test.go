package proxy

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestFlushedWhileChanging: somebody flushes again and again while hundreds of Services come, go and change. When that ends the
// kernel has the rules of those that are there, and no others.
func TestFlushedWhileChanging(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.start()
	const services = 200
	flushed := make(chan error, 1)
	go func() {
		var err error
		w.spaces["node"].In(func() {
			for range 20 {
				err = errors.Join(err, exec.Command("nft", "flush", "ruleset").Run())
			}
		})
		flushed <- err
	}()
	for i := range services {
		s := w.service(fmt.Sprint("s", i), corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.96.1.%d", i)}, map[string]bool{"pod1": true})
		switch {
		case i%4 == 1:
			require.NoError(t, w.client.CoreV1().Services("shop").Delete(t.Context(), s.Name, metav1.DeleteOptions{}))
		case i%4 == 2:
			w.endpoints(s, nil)
			w.endpoints(s, map[string]bool{"pod1": true})
		}
	}
	require.NoError(t, <-flushed)
	written := func() (text string) {
		w.spaces["node"].In(func() {
			out, _ := exec.Command("nft", "list", "map", "ip", "kontiki-services", "services").Output()
			text = string(out)
		})
		return text
	}
	require.Eventually(t, func() bool {
		count := strings.Count(written(), "10.96.1.")
		return count == services*3/4 && !strings.Contains(written(), fmt.Sprintf("10.96.1.%d ", services-3)) // the last that was deleted
	}, time.Minute, 50*time.Millisecond)
	w.eventually("pod1 10.244.0.12", "pod2", "tcp", "10.96.1.2:80")
	_, err := w.ask("pod2", "tcp", "10.96.1.1:80")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
