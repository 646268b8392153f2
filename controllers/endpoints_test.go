//lint:file-ignore SA1019 Endpoints are deprecated, and clients still read them: this file is about them.

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func withIP(ip string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}} }
}

func testService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.9", Selector: map[string]string{"app": "x"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("web")}},
		},
	}
}

func webPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: port, Protocol: corev1.ProtocolTCP}}}}
	}
}

// CT-09 for Endpoints: what they list, and where.
func TestEndpointsOf(t *testing.T) {
	gone := metav1.NewTime(testNow)
	pods := []*corev1.Pod{
		testPod("b", withIP("10.0.0.2"), webPort(8080), readyFor(time.Minute)),
		testPod("a", withIP("10.0.0.1"), webPort(8080), readyFor(time.Minute)),
		testPod("unready", withIP("10.0.0.3"), webPort(8080)),
		testPod("other number", withIP("10.0.0.4"), webPort(9090), readyFor(time.Minute)),
		testPod("no such port", withIP("10.0.0.5"), readyFor(time.Minute)),
		testPod("no address", webPort(8080), readyFor(time.Minute)),
		testPod("v6 only", withIP("fd00::1"), webPort(8080), readyFor(time.Minute)),
		testPod("terminating", withIP("10.0.0.6"), webPort(8080), readyFor(time.Minute), func(p *corev1.Pod) { p.DeletionTimestamp = &gone }),
		testPod("succeeded", withIP("10.0.0.7"), webPort(8080), readyFor(time.Minute), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
	}
	service := testService()
	show := func() (out []string) {
		for _, subset := range endpointsOf(service, pods).Subsets {
			line := fmt.Sprint(subset.Ports[0].Port)
			for _, a := range subset.Addresses {
				line += " " + a.TargetRef.Name
			}
			for _, a := range subset.NotReadyAddresses {
				line += " -" + a.TargetRef.Name
			}
			out = append(out, line)
		}
		return out
	}
	require.Equal(t, []string{"8080 a b -unready", "9090 other number"}, show())
	service.Spec.PublishNotReadyAddresses = true
	require.Equal(t, []string{"8080 a b unready terminating", "9090 other number"}, show(), "never the terminal ones")
}

func TestEndpointsAreCut(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 1200 {
		ready := func(*corev1.Pod) {}
		if i >= 300 {
			ready = readyFor(time.Minute)
		}
		pods = append(pods, testPod(fmt.Sprint(i), withIP(fmt.Sprintf("10.0.%d.%d", i/200, i%200+1)), webPort(80), ready))
	}
	out := endpointsOf(testService(), pods)
	require.Equal(t, "truncated", out.Annotations[corev1.EndpointsOverCapacity])
	require.Len(t, out.Subsets[0].Addresses, 900)
	require.Len(t, out.Subsets[0].NotReadyAddresses, 100)
}

func TestMirrorOf(t *testing.T) {
	source := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db"}, Subsets: []corev1.EndpointSubset{
		{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}}, NotReadyAddresses: []corev1.EndpointAddress{{IP: "192.0.2.2"}},
			Ports: []corev1.EndpointPort{{Name: "sql", Port: 5432}}},
		{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.3"}}, Ports: []corev1.EndpointPort{{Name: "sql", Port: 5433}}},
	}}
	got := map[string][]string{}
	for _, slice := range mirrorOf(source) {
		key := fmt.Sprintf("%s %d", slice.AddressType, *slice.Ports[0].Port)
		for _, e := range slice.Endpoints {
			got[key] = append(got[key], fmt.Sprintf("%s %v", e.Addresses[0], *e.Conditions.Ready))
		}
		require.Equal(t, "db", slice.Labels["kubernetes.io/service-name"])
	}
	require.Equal(t, map[string][]string{
		"IPv4 5432": {"192.0.2.1 true", "192.0.2.2 false"}, "IPv6 5432": {"2001:db8::1 true"}, "IPv4 5433": {"192.0.2.3 true"},
	}, got)
}
