package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
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

func dualServices() serviceAllocator {
	return serviceAllocator(Options{ServiceCIDR: netip.MustParsePrefix("10.0.0.0/24"), SecondServiceCIDR: netip.MustParsePrefix("fd00::/112")}.withDefaults())
}

// With two ranges, Services have the families that they ask for, in their order.
func TestDualStackServices(t *testing.T) {
	r, ctx := services(Options(dualServices())), context.Background()
	for _, c := range []struct{ spec, policy, families, first, second string }{
		{`{}`, "SingleStack", "IPv4", "10.0.0.", ""},
		{`{"ipFamilies":["IPv6"]}`, "SingleStack", "IPv6", "fd00::", ""},
		{`{"ipFamilyPolicy":"PreferDualStack"}`, "PreferDualStack", "IPv4 IPv6", "10.0.0.", "fd00::"},
		{`{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv6"]}`, "RequireDualStack", "IPv6 IPv4", "fd00::", "10.0.0."},
		{`{"ipFamilyPolicy":"RequireDualStack","clusterIP":"fd00::77"}`, "RequireDualStack", "IPv6 IPv4", "fd00::77", "10.0.0."},
		{`{"ipFamilyPolicy":"PreferDualStack","clusterIP":"None","selector":{"a":"b"}}`, "PreferDualStack", "IPv4 IPv6", "None", ""},
	} {
		s := serviceOf(t, c.spec)
		r.Strategy.Default(s)
		r.Strategy.PrepareForCreate(ctx, s)
		require.Empty(t, r.Strategy.Validate(ctx, s), c.spec)
		require.NoError(t, r.Strategy.Allocate(ctx, s, nil, claims{}.taken))
		require.Equal(t, c.policy, string(*s.Spec.IPFamilyPolicy), c.spec)
		require.Equal(t, c.families, strings.Trim(fmt.Sprint(s.Spec.IPFamilies), "[]"), c.spec)
		require.Equal(t, s.Spec.ClusterIP, s.Spec.ClusterIPs[0])
		require.True(t, strings.HasPrefix(s.Spec.ClusterIP, c.first), "%s: %s", c.spec, s.Spec.ClusterIP)
		if c.second != "" {
			require.True(t, strings.HasPrefix(s.Spec.ClusterIPs[1], c.second), "%s: %s", c.spec, s.Spec.ClusterIPs)
		}
	}
}

// A second address comes with the policy and goes with it; the first is for life.
func TestDualStackUpdates(t *testing.T) {
	r, ctx, held := services(Options(dualServices())), context.Background(), claims{}
	old := serviceOf(t, `{}`)
	require.NoError(t, held.write(t, r, old, nil))

	both := serviceOf(t, `{"ipFamilyPolicy":"RequireDualStack"}`)
	require.NoError(t, held.write(t, r, both, old))
	require.Len(t, both.Spec.ClusterIPs, 2)
	require.Equal(t, old.Spec.ClusterIP, both.Spec.ClusterIP)
	require.Len(t, held, 2)

	again := serviceOf(t, `{"ipFamilyPolicy":"RequireDualStack"}`)
	require.NoError(t, held.write(t, r, again, both))
	require.Equal(t, both.Spec, again.Spec)

	dropped := both.DeepCopy()
	dropped.Spec.ClusterIPs, dropped.Spec.IPFamilies = dropped.Spec.ClusterIPs[:1], dropped.Spec.IPFamilies[:1]
	require.Equal(t, []string{
		"spec.ipFamilyPolicy: Invalid value: must be 'SingleStack' to release the secondary IP family",
		"spec.ipFamilyPolicy: Invalid value: must be 'SingleStack' to release the secondary cluster IP",
	}, faultsOf(r.Strategy.ValidateUpdate(ctx, dropped, both)))

	one := both.DeepCopy()
	one.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	require.NoError(t, held.write(t, r, one, both))
	require.Empty(t, r.Strategy.ValidateUpdate(ctx, one, both))
	require.Equal(t, old.Spec.ClusterIPs, one.Spec.ClusterIPs)
	require.Equal(t, []corev1.IPFamily{corev1.IPv4Protocol}, one.Spec.IPFamilies)
	require.Len(t, held, 1)
}

// What two families refuse, and what one does.
func TestFamiliesThatDoNotFit(t *testing.T) {
	single := serviceAllocator(Options{}.withDefaults())
	for _, c := range []struct {
		a    serviceAllocator
		spec string
		want []string
	}{
		{single, `{"ipFamilyPolicy":"RequireDualStack"}`, []string{"spec.ipFamilyPolicy: Invalid value: this cluster is not configured for dual-stack services"}},
		{single, `{"ipFamilies":["IPv6"]}`, []string{"spec.ipFamilies[0]: Invalid value: not configured on this cluster"}},
		{single, `{"clusterIP":"fd00::1"}`, []string{"spec.clusterIPs[0]: Invalid value: IPv6 is not configured on this cluster"}},
		{dualServices(), `{"ipFamilies":["IPv4","IPv6"]}`, []string{"spec.ipFamilyPolicy: Invalid value: must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"}},
		{dualServices(), `{"clusterIP":"10.0.0.9","ipFamilies":["IPv6"]}`, []string{"spec.clusterIPs[0]: Invalid value: expected an IPv6 value as indicated by `ipFamilies[0]`"}},
		{dualServices(), `{"ipFamilyPolicy":"PreferDualStack","clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9","10.0.0.8"]}`, []string{
			"spec.clusterIPs: Invalid value: may specify no more than one IP for each IP family"}},
		{dualServices(), `{"clusterIP":"None","clusterIPs":["None","10.0.0.8"]}`, []string{"spec.clusterIPs: Invalid value: 'None' must be the first and only value"}},
		{dualServices(), `{"ipFamilies":["IPv4","IPv4","x"],"ipFamilyPolicy":"y"}`, []string{
			"spec.ipFamilies[1]: Duplicate value", "spec.ipFamilies[2]: Unsupported value: supported values: \"IPv4\", \"IPv6\"",
			"spec.ipFamilyPolicy: Unsupported value: supported values: \"PreferDualStack\", \"RequireDualStack\", \"SingleStack\""}},
	} {
		s := serviceOf(t, c.spec)
		defaultService(s)
		c.a.prepareServiceCreate(s)
		require.Equal(t, c.want, faultsOf(c.a.validateClusterIPs(&s.Spec)), c.spec)
	}
}

func serviceOf(t *testing.T, spec string) *corev1.Service {
	s := service("s", corev1.ServiceTypeClusterIP, corev1.ServicePort{Port: 80})
	require.NoError(t, json.Unmarshal([]byte(spec), &s.Spec))
	return s
}

// A Service has an address of the server's own range while there is one, then of those that users added.
func TestAddedServiceRanges(t *testing.T) {
	added := netip.MustParsePrefix("10.7.0.0/29")
	ctx := WithServiceRanges(t.Context(), func(context.Context) []netip.Prefix { return []netip.Prefix{added} })
	a := serviceAllocator(Options{ServiceCIDR: netip.MustParsePrefix("10.0.0.0/29")}.withDefaults())
	taken := map[string]bool{}
	allocate := func(ip string) (*corev1.Service, error) {
		s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: slices.DeleteFunc([]string{ip}, func(s string) bool { return s == "" }),
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Type: corev1.ServiceTypeClusterIP}}
		err := a.allocate(ctx, s, nil, func(claim string) bool { return taken[claim] })
		for _, claim := range serviceClaims(s) {
			taken[claim] = true
		}
		return s, err
	}
	own := 0
	for i := range 10 {
		s, err := allocate("")
		require.NoError(t, err)
		if a.ServiceCIDR.Contains(netip.MustParseAddr(s.Spec.ClusterIP)) {
			own++
			require.Equal(t, i+1, own, "the server's own come first")
		} else {
			require.True(t, added.Contains(netip.MustParseAddr(s.Spec.ClusterIP)), s.Spec.ClusterIP)
		}
	}
	require.Equal(t, 5, own)
	_, err := allocate("")
	require.ErrorContains(t, err, "range is full")
	_, err = allocate("10.7.0.1")
	require.NoError(t, err, "the first address is for who asks for it")
	_, err = allocate("10.7.0.7")
	require.ErrorContains(t, err, "not in the valid range")
}
