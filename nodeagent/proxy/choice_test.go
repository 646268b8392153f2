package proxy

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// change rewrites the endpoints of a Service, pod1 first.
func (w *world) change(s *corev1.Service, change func(pod1, pod2 *discoveryv1.Endpoint)) {
	w.t.Helper()
	slice := sliceOf(s, both)
	one, two := &slice.Endpoints[0], &slice.Endpoints[1]
	if one.Addresses[0] != pods["pod1"] {
		one, two = two, one
	}
	change(one, two)
	_, err := w.client.DiscoveryV1().EndpointSlices("shop").Update(w.t.Context(), slice, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// only waits until an endpoint gets all of 20 connections in a row.
func (w *world) only(pod string) {
	w.t.Helper()
	row := 0
	require.Eventually(w.t, func() bool {
		for row = 0; row < 20; row++ {
			if got, err := w.ask("node", "tcp", "10.96.0.20:80"); err != nil || !strings.HasPrefix(got, pod+" ") {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond, "%s has only %d connections in a row", pod, row)
}

// TestTrafficDistribution has a node keep to the endpoints that hints assign to it or, without such, to its zone: what
// trafficDistribution PreferSameNode and PreferSameZone (or PreferClose) make of EndpointSlices.
func TestTrafficDistribution(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.serve("pod2", 8080)
	_, err := w.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{corev1.LabelTopologyZone: "z1"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.start()
	s := w.service("web", corev1.ServiceSpec{ClusterIP: "10.96.0.20", TrafficDistribution: ptr.To(corev1.ServiceTrafficDistributionPreferSameNode)}, both)
	hint := func(zone1, node1, zone2, node2 string) {
		w.change(s, func(pod1, pod2 *discoveryv1.Endpoint) {
			hints := func(zone, node string) *discoveryv1.EndpointHints {
				h := &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
				if node != "" {
					h.ForNodes = []discoveryv1.ForNode{{Name: node}}
				}
				return h
			}
			pod1.Hints, pod2.Hints = hints(zone1, node1), hints(zone2, node2)
		})
	}
	hint("z1", "", "z2", "")
	w.only("pod1")
	hint("z2", "", "z1", "")
	w.only("pod2")
	hint("z1", "other", "z1", "node")
	w.only("pod2")
	hint("z1", "node", "z1", "other")
	w.only("pod1")
	_, err = w.client.CoreV1().Nodes().Update(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{corev1.LabelTopologyZone: "z2"}},
	}, metav1.UpdateOptions{})
	require.NoError(t, err)
	hint("z1", "", "z2", "")
	w.only("pod2") // the node has moved
}

// TestTerminatingEndpoints has the last pods of a Service serve while they end, and give way to one that is ready.
func TestTerminatingEndpoints(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.serve("pod2", 8080)
	w.start()
	s := w.service("web", corev1.ServiceSpec{ClusterIP: "10.96.0.20"}, both)
	ending := func(serving bool) discoveryv1.EndpointConditions {
		return discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: &serving, Terminating: ptr.To(true)}
	}
	w.change(s, func(pod1, pod2 *discoveryv1.Endpoint) { pod1.Conditions = ending(true) })
	w.only("pod2")
	w.change(s, func(pod1, pod2 *discoveryv1.Endpoint) { pod1.Conditions, pod2.Conditions = ending(true), ending(false) })
	w.only("pod1")
	w.change(s, func(pod1, pod2 *discoveryv1.Endpoint) {
		pod1.Conditions, pod2.Conditions = ending(false), ending(false)
	})
	require.Eventually(t, func() bool {
		_, err := w.ask("node", "tcp", "10.96.0.20:80")
		return errors.Is(err, syscall.ECONNREFUSED)
	}, time.Minute, 20*time.Millisecond)
}

// TestOthersServices has the proxy leave alone what is headless, of another name, or of another proxy.
func TestOthersServices(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.start()
	w.service("headless", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}, map[string]bool{"pod1": true})
	w.service("name", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}, map[string]bool{"pod1": true})
	other := w.service("other", corev1.ServiceSpec{ClusterIP: "10.96.0.21"}, map[string]bool{"pod1": true})
	w.service("mine", corev1.ServiceSpec{ClusterIP: "10.96.0.20"}, map[string]bool{"pod1": true})
	w.eventually("pod1 192.0.2.1", "node", "tcp", "10.96.0.21:80")
	other.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "somebody"}
	_, err := w.client.CoreV1().Services("shop").Update(t.Context(), other, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !strings.Contains(w.rules(), "shop/other") }, time.Minute, 20*time.Millisecond)
	rules := w.rules()
	require.Contains(t, rules, "cluster/shop/mine")
	for _, name := range []string{"headless", "name"} {
		require.NotContains(t, rules, "shop/"+name+"/")
	}
}

// rules is the table of the node.
func (w *world) rules() (text string) {
	w.t.Helper()
	w.spaces["node"].In(func() {
		out, err := exec.Command("nft", "list", "table", "ip", defaultTable).CombinedOutput()
		if text = string(out); err != nil {
			text = "" // not yet
		}
	})
	return text
}

// TestAffinityEnds_NW07 has a client be forgotten when it has not come for the timeout.
func TestAffinityEnds_NW07(t *testing.T) {
	w := newWorld(t)
	w.serve("pod1", 8080)
	w.serve("pod2", 8080)
	w.start()
	w.service("web", corev1.ServiceSpec{
		ClusterIP: "10.96.0.20", SessionAffinity: corev1.ServiceAffinityClientIP,
		SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](1)}},
	}, both)
	answered := map[string]bool{}
	require.Eventually(t, func() bool {
		if strings.Contains(w.rules(), "expires") { // an element of an affinity set
			return false
		}
		if got, err := w.ask("node", "tcp", "10.96.0.20:80"); err == nil {
			answered[strings.Fields(got)[0]] = true
		}
		return len(answered) == 2
	}, time.Minute, 20*time.Millisecond, "each time it is chosen anew: %v", answered)
}
