package controllers

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kontiki/internal/loadbalancer"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// balancedCluster is a real API server with the controllers, which have four addresses for Services.
func balancedCluster(t *testing.T, pool string) *cluster {
	c := &cluster{Cluster: testcluster.Start(t), t: t, namespace: "default"}
	c.Interface = c.Admin()
	for range 2 { // two that both act, as when a server has not heard yet that it is not the leader any more
		c.Go("controllers", func(ctx context.Context) error {
			return Run(ctx, Config{REST: c.REST(pki.ControllerManager), LoadBalancerCIDRs: []netip.Prefix{netip.MustParsePrefix(pool)}, Log: c.Log})
		})
	}
	return c
}

func (c *cluster) balance(name string, change func(*corev1.Service)) {
	c.t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if change != nil {
		change(s)
	}
	_, err := c.CoreV1().Services(c.namespace).Create(c.t.Context(), s, metav1.CreateOptions{})
	require.NoError(c.t, err)
}

// addressOf is what a Service's status says: an address, or the reason why not.
func (c *cluster) addressOf(name string) string {
	s, err := c.CoreV1().Services(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if a := loadbalancer.Announced(s); len(a) > 0 {
		return fmt.Sprint(a[0])
	}
	if condition := meta.FindStatusCondition(s.Status.Conditions, loadbalancer.Assigned); condition != nil {
		return condition.Reason
	}
	return ""
}

func (c *cluster) awaitAddress(name, want string) {
	c.t.Helper()
	c.eventually("address of "+name+" is "+want, func() (bool, string) {
		got := c.addressOf(name)
		return got == want, got
	})
}

// heldAddresses are the IPAddresses of load balancers.
func (c *cluster) heldAddresses() string {
	list, err := c.NetworkingV1().IPAddresses().List(c.t.Context(), metav1.ListOptions{LabelSelector: "ipaddress.kubernetes.io/managed-by=" + loadbalancer.ManagedBy})
	require.NoError(c.t, err)
	var out []string
	for _, a := range list.Items {
		out = append(out, a.Name+"="+a.Spec.ParentRef.Name)
	}
	return strings.Join(out, " ")
}

// TestLoadBalancerAddresses: each Service has an address of its own of the pool, the one it wants if it says so, and gives it
// back; one that must wait gets the next that is free.
func TestLoadBalancerAddresses(t *testing.T) {
	c := balancedCluster(t, "192.0.2.252/30") // without 192.0.2.255
	c.balance("wishes", func(s *corev1.Service) {
		s.Annotations = map[string]string{loadbalancer.AddressesAnnotation: "192.0.2.253"}
	})
	c.awaitAddress("wishes", "192.0.2.253")
	c.balance("other", func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("example.com/cloud") })
	c.balance("plain", nil)
	c.awaitAddress("plain", "192.0.2.252")
	c.balance("classy", func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To(loadbalancer.Class) })
	c.awaitAddress("classy", "192.0.2.254")
	c.balance("late", nil)
	c.awaitAddress("late", "PoolExhausted")
	c.balance("greedy", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "192.0.2.253" })
	c.awaitAddress("greedy", "AddressTaken")
	c.balance("far", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "198.51.100.1" })
	c.awaitAddress("far", "NotInPool")
	require.Empty(t, c.addressOf("other"))
	require.Equal(t, "192.0.2.252=plain 192.0.2.253=wishes 192.0.2.254=classy", c.heldAddresses())

	_, err := c.CoreV1().Services("default").Patch(t.Context(), "classy", types.MergePatchType, []byte(`{"spec":{"type":"ClusterIP","loadBalancerClass":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.awaitAddress("late", "192.0.2.254")
	c.awaitAddress("classy", "")
	require.NoError(t, c.CoreV1().Services("default").Delete(t.Context(), "wishes", metav1.DeleteOptions{}))
	c.awaitAddress("greedy", "192.0.2.253")
	require.Equal(t, "192.0.2.252=plain 192.0.2.253=greedy 192.0.2.254=late", c.heldAddresses())

	// Who deletes the object by which an address is held only has it made again.
	require.NoError(t, c.NetworkingV1().IPAddresses().Delete(t.Context(), "192.0.2.252", metav1.DeleteOptions{}))
	c.eventually("it is held again", func() (bool, string) {
		got := c.heldAddresses()
		return strings.HasPrefix(got, "192.0.2.252="), got
	})
	events, err := c.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=far"})
	require.NoError(t, err)
	require.NotEmpty(t, events.Items)
	require.Equal(t, "wanted address 198.51.100.1 is not in the pool [192.0.2.252/30]", events.Items[0].Message)
}

// TestLoadBalancerAddressesAreUnique: Services come and go at once, with two controllers at work.
func TestLoadBalancerAddressesAreUnique(t *testing.T) {
	c := balancedCluster(t, "192.0.2.16/28")
	for round := range 3 {
		for i := range 16 {
			c.balance(fmt.Sprintf("s%d-%d", round, i), nil)
		}
		c.eventually("all have one", func() (bool, string) {
			list, err := c.CoreV1().Services("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			holders := map[netip.Addr]string{}
			waiting := 0
			for _, s := range list.Items {
				addresses := loadbalancer.Announced(&s)
				if s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(addresses) == 0 {
					waiting++
				}
				for _, a := range addresses {
					require.Empty(t, holders[a], "%s is also that of %s", a, s.Name)
					holders[a] = s.Name
				}
			}
			return waiting == 0, fmt.Sprint(waiting, " wait: ", holders)
		})
		for i := range 16 {
			err := c.CoreV1().Services("default").Delete(t.Context(), fmt.Sprintf("s%d-%d", round, i), metav1.DeleteOptions{})
			require.True(t, err == nil || apierrors.IsNotFound(err), err)
		}
	}
	c.eventually("nothing is held", func() (bool, string) {
		got := c.heldAddresses()
		return got == "", got
	})
}
