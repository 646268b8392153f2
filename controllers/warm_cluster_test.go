package controllers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// counted counts the lists and watches that a client begins, but for those of its Lease.
type counted struct {
	http.RoundTripper
	begun *atomic.Int64
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.URL.Query().Get("fieldSelector") == "" && !strings.Contains(r.URL.Path, "/leases/") {
		c.begun.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// warmed is how many watches runWarm begins.
const warmed = 5

// TestWarmTakeover: what has Services follow their pods takes over with the caches that it has, again and again, and misses
// nothing.
func TestWarmTakeover(t *testing.T) {
	c := &cluster{Cluster: testcluster.Start(t), t: t, namespace: "default"}
	c.Interface = c.Admin()
	begun := map[string]*atomic.Int64{"a": {}, "b": {}}
	start := func(name string) (stop func()) {
		config := Config{REST: c.REST(pki.ControllerManager), Identity: name, Log: c.Log}
		config.REST.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, begun[name]} })
		return c.Go(name, func(ctx context.Context) error { return runWarm(ctx, config) })
	}
	holder := func(name string) {
		t.Helper()
		c.eventually("Lease of "+name, func() (bool, string) {
			lease, err := c.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "kontiki-endpoints", metav1.GetOptions{})
			return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == name, fmt.Sprint(lease, err)
		})
	}
	_, err := c.CoreV1().Services(c.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.CoreV1().ServiceAccounts(c.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.kubelet()

	stops := map[string]func(){"a": start("a")}
	holder("a")
	stops["b"] = start("b")
	c.eventually("caches of b", func() (bool, string) { return begun["b"].Load() == warmed, fmt.Sprint(begun["b"].Load()) })
	for i, name := range []string{"a", "b", "a", "b"} {
		other := map[string]string{"a": "b", "b": "a"}[name]
		holder(name)
		c.pod(fmt.Sprint("before-", i))
		c.eventually("endpoint", c.hasEndpoints(i+1))
		before := begun[other].Load()
		stops[name]()
		holder(other)
		require.NoError(t, c.CoreV1().Pods(c.namespace).Delete(t.Context(), fmt.Sprint("before-", i), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
		c.pod(fmt.Sprint("after-", i))
		c.eventually("another endpoint instead", c.hasEndpoints(i+1))
		require.Equal(t, before, begun[other].Load(), "it had all at hand")
		before = begun[name].Load()
		stops[name] = start(name)
		c.eventually("caches again", func() (bool, string) { return begun[name].Load() == before+warmed, fmt.Sprint(begun[name].Load()) })
	}
}

func (c *cluster) pod(name string) {
	c.t.Helper()
	_, err := c.CoreV1().Pods(c.namespace).Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "good"}}},
	}, metav1.CreateOptions{})
	require.NoError(c.t, err)
}

// hasEndpoints says whether the slices of the Service web have as many as there are pods.
func (c *cluster) hasEndpoints(n int) func() (bool, string) {
	return func() (bool, string) {
		slices, err := c.DiscoveryV1().EndpointSlices(c.namespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
		if err != nil {
			return false, err.Error()
		}
		pods, err := c.CoreV1().Pods(c.namespace).List(c.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		there := map[string]bool{}
		for _, pod := range pods.Items {
			there[string(pod.UID)] = true
		}
		found := 0
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if !there[string(e.TargetRef.UID)] {
					return false, fmt.Sprintf("%s is gone, and still an endpoint", e.TargetRef.Name)
				}
				found++
			}
		}
		return found == n && len(there) == n, fmt.Sprintf("%d endpoints, %d pods, want %d", found, len(there), n)
	}
}
