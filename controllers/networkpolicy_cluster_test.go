package controllers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"kontiki/internal/policypeers"
)

// The peers of a policy follow its rules, the labels of pods and namespaces, and pods that end; all goes with the policy.
func TestNetworkPolicyPeers(t *testing.T) {
	c := startCluster(t)
	for _, name := range []string{"near", "far"} {
		c.createNamespace(name)
	}
	c.podAt("near", "db", "10.244.0.5", 0)
	c.podAt("near", "web", "10.244.0.6", 0)
	c.podAt("far", "db", "10.244.1.5", 9090)
	policies := c.NetworkingV1().NetworkPolicies("near")
	policy, err := policies.Create(t.Context(), &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{
			{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.eventuallyPeers("near", "10.244.0.5")

	c.relabel("near", "web", "db")
	c.eventuallyPeers("near", "10.244.0.5", "10.244.0.6")
	c.relabel("near", "web", "web")
	c.eventuallyPeers("near", "10.244.0.5")

	policy.Spec.Ingress[0].From[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	policy, err = policies.Update(t.Context(), policy, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventuallyPeers("near")
	_, err = c.CoreV1().Namespaces().Patch(t.Context(), "far", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"a"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.eventuallyPeers("near", "10.244.1.5")

	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromString("web"))}}}}
	policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	_, err = policies.Update(t.Context(), policy, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventuallyPeers("near", "10.244.1.5 web=9090")

	pod, err := c.CoreV1().Pods("far").Get(t.Context(), "db", metav1.GetOptions{})
	require.NoError(t, err)
	pod.Status.Phase = corev1.PodSucceeded
	_, err = c.CoreV1().Pods("far").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventuallyPeers("near")

	c.podAt("far", "db2", "10.244.1.6", 9091)
	c.eventuallyPeers("near", "10.244.1.6 web=9091")
	require.NoError(t, policies.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	c.eventuallyPeers("near")
}

// podAt makes a pod that runs, with a label app of its name and perhaps a port "web".
func (c *cluster) podAt(namespace, name, address string, web int32) {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "good"}}},
	}
	if web != 0 {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: web}}
	}
	pod, err := c.CoreV1().Pods(namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(c.t, err)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	_, err = c.CoreV1().Pods(namespace).UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

func (c *cluster) relabel(namespace, pod, app string) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, app)
	_, err := c.CoreV1().Pods(namespace).Patch(c.t.Context(), pod, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	require.NoError(c.t, err)
}

// eventuallyPeers waits until the slices of peers in a namespace hold these, each an address and the ports of its slice.
func (c *cluster) eventuallyPeers(namespace string, want ...string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("peers %v", want), func() (bool, string) {
		list, err := c.DiscoveryV1().EndpointSlices(namespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelManagedBy + "=" + policypeers.ManagedBy})
		require.NoError(c.t, err)
		var got []string
		for i := range list.Items {
			ports := ""
			for _, p := range list.Items[i].Ports {
				ports += fmt.Sprintf(" %s=%d", *p.Name, *p.Port)
			}
			for _, e := range list.Items[i].Endpoints {
				got = append(got, e.Addresses[0]+ports)
			}
		}
		slices.Sort(got)
		return slices.Equal(want, got), fmt.Sprint(got)
	})
}
