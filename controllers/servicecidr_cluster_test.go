package controllers

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A range that a user adds gives addresses to Services, and goes when the last of them is free.
func TestServiceCIDRs(t *testing.T) {
	c := startCluster(t)
	cidrs, services := c.NetworkingV1().ServiceCIDRs(), c.CoreV1().Services("default")
	service := func(name, ip string) error {
		_, err := services.Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		return err
	}
	require.ErrorContains(t, service("early", "10.55.0.9"), "not in the valid range")
	_, err := cidrs.Create(t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.55.0.0/28"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	condition := func() *metav1.Condition {
		cidr, err := cidrs.Get(t.Context(), "more", metav1.GetOptions{})
		require.NoError(t, err)
		return meta.FindStatusCondition(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	}
	c.eventually("the range is ready", func() (bool, string) {
		ready := condition()
		return ready != nil && ready.Status == metav1.ConditionTrue, ""
	})
	c.eventually("a Service has an address of it", func() (bool, string) {
		err := service("s", "10.55.0.9")
		return err == nil || apierrors.IsAlreadyExists(err), ""
	})
	require.ErrorContains(t, service("t", "10.55.0.15"), "not in the valid range", "the last one is for broadcasts")

	require.NoError(t, cidrs.Delete(t.Context(), "more", metav1.DeleteOptions{}))
	c.eventually("it is not used any more", func() (bool, string) { return condition().Reason == networkingv1.ServiceCIDRReasonTerminating, "" })
	c.eventually("and gives no address out", func() (bool, string) {
		err := service("late", "10.55.0.10")
		_ = services.Delete(context.WithoutCancel(t.Context()), "late", metav1.DeleteOptions{})
		return err != nil, ""
	})
	require.NotNil(t, condition(), "it stays while a Service has an address of it")
	require.NoError(t, services.Delete(t.Context(), "s", metav1.DeleteOptions{}))
	c.eventually("it goes", func() (bool, string) {
		_, err := cidrs.Get(t.Context(), "more", metav1.GetOptions{})
		return apierrors.IsNotFound(err), ""
	})
}

func TestHasAddress(t *testing.T) {
	cidr := &networkingv1.ServiceCIDR{Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.0.0.0/30", "fd00::/120"}}}
	for ip, want := range map[string]bool{"10.0.0.3": true, "10.0.0.4": false, "fd00::ff": true, "fd00::1ff": false} {
		require.Equal(t, want, hasAddress(cidr, netip.MustParseAddr(ip)), ip)
	}
}
