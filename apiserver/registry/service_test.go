package registry

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// claims plays the store: who holds what.
type claims map[string]string

func (c claims) taken(claim string) bool { return c[claim] != "" }

// write allocates for s and, if that succeeds, moves its claims as the store's transaction would.
func (c claims) write(t require.TestingT, r *Resource, s, old *corev1.Service) error {
	ctx := context.Background()
	r.Strategy.Default(s)
	var held []string
	if old != nil {
		r.Strategy.PrepareForUpdate(ctx, s, old)
		held = r.Strategy.Claims(old)
		if err := r.Strategy.Allocate(ctx, s, old, c.taken); err != nil {
			return err
		}
	} else {
		r.Strategy.PrepareForCreate(ctx, s)
		if err := r.Strategy.Allocate(ctx, s, nil, c.taken); err != nil {
			return err
		}
	}
	for _, claim := range held {
		delete(c, claim)
	}
	for _, claim := range r.Strategy.Claims(s) {
		require.Empty(t, c[claim], "%s is given out twice", claim)
		c[claim] = s.Name
	}
	return nil
}

func service(name string, kind corev1.ServiceType, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Type: kind, Ports: ports}}
}

func port(number, nodePort int32, protocol corev1.Protocol) corev1.ServicePort {
	return corev1.ServicePort{Port: number, NodePort: nodePort, Protocol: protocol, Name: string(protocol)}
}

func smallServices() *Resource {
	return services(Options{ServiceCIDR: netip.MustParsePrefix("10.0.0.0/29"), NodePorts: [2]int32{30000, 30003}}.withDefaults())
}

// Of eight addresses the network's, the cluster's own and the last are not given out.
func TestClusterIPsRunOut(t *testing.T) {
	r, c := smallServices(), claims{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		require.NoError(t, c.write(t, r, service(name, corev1.ServiceTypeClusterIP, port(80, 0, "TCP")), nil))
	}
	err := c.write(t, r, service("f", corev1.ServiceTypeClusterIP, port(80, 0, "TCP")), nil)
	require.ErrorContains(t, err, "range is full")
	require.NotContains(t, c, "/kontiki/claims/clusterip/10.0.0.1")
}

func TestChosenAddressesAndPorts(t *testing.T) {
	r, c := smallServices(), claims{"/kontiki/claims/clusterip/10.0.0.3": "x", "/kontiki/claims/nodeport/30001": "x"}
	for ip, why := range map[string]string{
		"10.0.0.3": "failed to allocate IP 10.0.0.3: provided IP is already allocated",
		"10.0.0.1": "failed to allocate IP 10.0.0.1: provided IP is already allocated", // default/kubernetes
		"1.2.3.4":  "the provided IP (1.2.3.4) is not in the valid range. The range of valid IPs is 10.0.0.0/29",
		"10.0.0.7": "is not in the valid range",
	} {
		s := service("s", corev1.ServiceTypeClusterIP, port(80, 0, "TCP"))
		s.Spec.ClusterIP = ip
		err := c.write(t, r, s, nil)
		require.True(t, apierrors.IsInvalid(err))
		require.ErrorContains(t, err, why)
	}
	first := service("kubernetes", corev1.ServiceTypeClusterIP, port(443, 0, "TCP"))
	first.Namespace, first.Spec.ClusterIP = "default", "10.0.0.1"
	require.NoError(t, c.write(t, r, first, nil))

	err := c.write(t, r, service("s", corev1.ServiceTypeNodePort, port(80, 30001, "TCP")), nil)
	require.ErrorContains(t, err, "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated")
	err = c.write(t, r, service("s", corev1.ServiceTypeNodePort, port(80, 80, "TCP")), nil)
	require.ErrorContains(t, err, "provided port is not in the valid range. The range of valid ports is 30000-30003")
}

// One address is one claim, however it is spelled.
func TestClaimsAreCanonical(t *testing.T) {
	require.Equal(t, clusterIPClaim("fd00::1"), clusterIPClaim("fd00:0:0::0:1"))
	require.Equal(t, podCIDRClaim("10.1.2.0/24"), podCIDRClaim("10.1.2.3/24"))
}

// TCP and UDP of one port share a node port, and one claim.
func TestProtocolsShareANodePort(t *testing.T) {
	r, c := smallServices(), claims{}
	s := service("dns", corev1.ServiceTypeNodePort, port(53, 0, "TCP"), port(53, 0, "UDP"))
	require.NoError(t, c.write(t, r, s, nil))
	require.Equal(t, s.Spec.Ports[0].NodePort, s.Spec.Ports[1].NodePort)
	require.Len(t, r.Strategy.Claims(s), 2)
}

// A PUT of the manifest keeps what was allocated; another type gives up what it does not need (AP-38).
func TestUpdatesKeepAndRelease(t *testing.T) {
	r, c := smallServices(), claims{}
	s := service("s", corev1.ServiceTypeNodePort, port(80, 0, "TCP"))
	require.NoError(t, c.write(t, r, s, nil))

	again := service("s", corev1.ServiceTypeNodePort, port(80, 0, "TCP"))
	require.NoError(t, c.write(t, r, again, s))
	require.Equal(t, s.Spec, again.Spec)

	plain := again.DeepCopy()
	plain.Spec.Type = corev1.ServiceTypeClusterIP
	require.NoError(t, c.write(t, r, plain, again))
	require.Zero(t, plain.Spec.Ports[0].NodePort)
	require.Empty(t, plain.Spec.ExternalTrafficPolicy)
	require.Len(t, c, 1, "the node port is free again")

	alias := plain.DeepCopy()
	alias.Spec.Type, alias.Spec.ExternalName = corev1.ServiceTypeExternalName, "a.b"
	require.NoError(t, c.write(t, r, alias, plain))
	require.Empty(t, alias.Spec.ClusterIP)
	require.Empty(t, alias.Spec.ClusterIPs)
	require.Empty(t, c, "an ExternalName holds nothing")
}

// Whatever is created, changed and deleted, nothing is given out twice and nothing leaks.
func TestAllocationModel(t *testing.T) {
	r := services(Options{ServiceCIDR: netip.MustParsePrefix("10.0.0.0/27"), NodePorts: [2]int32{30000, 30015}}.withDefaults())
	kinds := []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName}
	rapid.Check(t, func(t *rapid.T) {
		c, live := claims{}, map[string]*corev1.Service{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.StringMatching(`[a-h]`).Draw(t, "name")
			old := live[name]
			if old != nil && rapid.Bool().Draw(t, "delete") {
				for _, claim := range r.Strategy.Claims(old) {
					delete(c, claim)
				}
				delete(live, name)
				continue
			}
			s := service(name, rapid.SampledFrom(kinds).Draw(t, "type"), port(80, 0, "TCP"), port(80, 0, "UDP"))
			s.Spec.ExternalName = "a.b"
			if rapid.Bool().Draw(t, "chooses") && s.Spec.Type == corev1.ServiceTypeNodePort {
				s.Spec.Ports[0].NodePort = rapid.Int32Range(29999, 30016).Draw(t, "port")
			}
			if rapid.Bool().Draw(t, "local") && s.Spec.Type == corev1.ServiceTypeLoadBalancer {
				s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			}
			if err := c.write(t, r, s, old); err == nil {
				live[name] = s
			}
		}
		held := 0
		for _, s := range live {
			held += len(r.Strategy.Claims(s))
		}
		require.Len(t, c, held)
	})
}
