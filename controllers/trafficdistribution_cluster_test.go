package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The trafficDistribution of a Service becomes hints of its endpoints, which proxies follow (KEP-3015).
func TestTrafficDistribution(t *testing.T) {
	c := startCluster(t)
	for _, n := range []string{"1", "2"} {
		_, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-" + n, Labels: map[string]string{corev1.LabelTopologyZone: "zone-" + n}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		pod, err := c.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pod-" + n, Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: "node-" + n, Containers: []corev1.Container{{Name: "c", Image: "good"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.244.0." + n, PodIPs: []corev1.PodIP{{IP: "10.244.0." + n}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		_, err = c.CoreV1().Pods(c.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	services := c.CoreV1().Services(c.namespace)
	service, err := services.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, step := range []struct {
		distribution *string
		want         []string
	}{
		{nil, []string{"node-1", "node-2"}},
		{ptr.To(corev1.ServiceTrafficDistributionPreferClose), []string{"node-1 zone-1", "node-2 zone-2"}},
		{ptr.To(corev1.ServiceTrafficDistributionPreferSameNode), []string{"node-1 zone-1 node-1", "node-2 zone-2 node-2"}},
		{ptr.To(corev1.ServiceTrafficDistributionPreferSameZone), []string{"node-1 zone-1", "node-2 zone-2"}},
	} {
		service.Spec.TrafficDistribution = step.distribution
		service, err = services.Update(t.Context(), service, metav1.UpdateOptions{})
		require.NoError(t, err)
		c.eventually(fmt.Sprint(ptr.Deref(step.distribution, "none")), func() (bool, string) {
			list, err := c.DiscoveryV1().EndpointSlices(c.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
			require.NoError(t, err)
			var got []string
			for i := range list.Items {
				for _, e := range list.Items[i].Endpoints {
					got = append(got, strings.Join(hintsOf(e), " "))
				}
			}
			slices.Sort(got)
			return slices.Equal(step.want, got), fmt.Sprint(got)
		})
	}
}

// hintsOf is an endpoint's node, and the zones and nodes that it is for.
func hintsOf(e discoveryv1.Endpoint) []string {
	words := []string{ptr.Deref(e.NodeName, "")}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			words = append(words, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			words = append(words, n.Name)
		}
	}
	return words
}
