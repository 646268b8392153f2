package policypeers

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// world is namespaces with their pods.
type world map[*corev1.Namespace][]*corev1.Pod

func (w world) Namespaces() (all []*corev1.Namespace) {
	for n := range w {
		all = append(all, n)
	}
	return all
}

func (w world) PodsOf(namespace string) []*corev1.Pod {
	for n, pods := range w {
		if n.Name == namespace {
			return pods
		}
	}
	return nil
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// pod is one of a namespace, with a label app, a port "web" and addresses.
func pod(namespace, app string, web int32, addresses ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"app": app}}}
	for _, a := range addresses {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: a})
	}
	p.Spec.Containers = []corev1.Container{{Name: "c"}}
	if web != 0 {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: web}}
	}
	return p
}

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func changed(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(p)
	return p
}

// TestResolve is whom each kind of peer means.
func TestResolve(t *testing.T) {
	cluster := world{
		namespace("shop", map[string]string{"team": "a"}): {
			pod("shop", "db", 8080, "10.0.0.1", "fd00::1"), pod("shop", "web", 0, "10.0.0.2"),
			changed(pod("shop", "db", 0, "10.0.0.3"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			changed(pod("shop", "db", 0, "192.0.2.1"), func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
			pod("shop", "db", 0),
		},
		namespace("back", map[string]string{"team": "b"}):  {pod("back", "db", 9090, "10.0.1.1"), pod("back", "web", 8080, "10.0.1.2")},
		namespace("other", map[string]string{"team": "c"}): {pod("other", "db", 0, "10.0.2.1")},
	}
	web := []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromString("web")), Protocol: ptr.To(corev1.ProtocolTCP)}}
	block := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}
	db, teamB, all := selector("app", "db"), selector("team", "b"), &metav1.LabelSelector{}
	for name, c := range map[string]struct {
		peers []networkingv1.NetworkPolicyPeer
		ports []networkingv1.NetworkPolicyPort
		want  map[string][]string // addresses by group; nil: no selection
	}{
		"nobody in particular": {nil, nil, nil},
		"addresses alone":      {[]networkingv1.NetworkPolicyPeer{block}, nil, nil},
		"addresses alone, with a port name, which only pods have": {[]networkingv1.NetworkPolicyPeer{block}, web, nil},
		"pods of the own namespace": {[]networkingv1.NetworkPolicyPeer{{PodSelector: db}}, nil,
			map[string][]string{"IPv4": {"10.0.0.1"}, "IPv6": {"fd00::1"}}},
		"all pods of the own namespace, beside addresses": {[]networkingv1.NetworkPolicyPeer{{PodSelector: all}, block}, nil,
			map[string][]string{"IPv4": {"10.0.0.1", "10.0.0.2"}, "IPv6": {"fd00::1"}}},
		"all pods of some namespaces": {[]networkingv1.NetworkPolicyPeer{{NamespaceSelector: teamB}}, nil,
			map[string][]string{"IPv4": {"10.0.1.1", "10.0.1.2"}}},
		"some pods of some namespaces": {[]networkingv1.NetworkPolicyPeer{{NamespaceSelector: teamB, PodSelector: db}}, nil,
			map[string][]string{"IPv4": {"10.0.1.1"}}},
		"one or the other": {[]networkingv1.NetworkPolicyPeer{{NamespaceSelector: teamB, PodSelector: db}, {PodSelector: selector("app", "web")}}, nil,
			map[string][]string{"IPv4": {"10.0.0.2", "10.0.1.1"}}},
		"some pods of all namespaces, by the number of a port": {[]networkingv1.NetworkPolicyPeer{{NamespaceSelector: all, PodSelector: db}}, web,
			map[string][]string{"IPv4 TCP/web=8080": {"10.0.0.1"}, "IPv6 TCP/web=8080": {"fd00::1"}, "IPv4 TCP/web=9090": {"10.0.1.1"}, "IPv4": {"10.0.2.1"}}},
		"all that have a port of the name": {nil, web,
			map[string][]string{"IPv4 TCP/web=8080": {"10.0.0.1", "10.0.1.2"}, "IPv6 TCP/web=8080": {"fd00::1"}, "IPv4 TCP/web=9090": {"10.0.1.1"}}},
	} {
		s := OfEgress("shop", networkingv1.NetworkPolicyEgressRule{To: c.peers, Ports: c.ports})
		require.Equal(t, c.want == nil, s == nil, name)
		if s == nil {
			continue
		}
		got := map[string][]string{}
		for _, g := range s.Resolve(cluster) {
			for _, a := range g.Addresses {
				got[g.ID()] = append(got[g.ID()], a.String())
			}
		}
		require.Equal(t, c.want, got, name)
	}
}

// TestKeys are equal for what selects the same, and different for all else.
func TestKeys(t *testing.T) {
	db := []networkingv1.NetworkPolicyPeer{{PodSelector: selector("app", "db")}}
	key := func(peers []networkingv1.NetworkPolicyPeer, ports ...string) string {
		rule := networkingv1.NetworkPolicyEgressRule{To: peers}
		for _, p := range ports {
			rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: ptr.To(intstr.Parse(p))})
		}
		return OfEgress("shop", rule).Key
	}
	require.Equal(t, key(db), OfIngress("shop", networkingv1.NetworkPolicyIngressRule{From: db}).Key)
	require.Equal(t, key(db), key(db, "80"), "numbers need no looking up")
	require.Equal(t, key(db, "web", "db"), key(db, "db", "web"))
	different := []string{key(db), key(db, "web"), key(db, "web", "db"), key(nil, "web"), key([]networkingv1.NetworkPolicyPeer{{NamespaceSelector: selector("app", "db")}})}
	seen := map[string]bool{}
	for _, k := range different {
		require.False(t, seen[k], k)
		seen[k] = true
	}
}

// TestDirections is how policyTypes default, where the API server has not done so.
func TestDirections(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{}
	is := func(wantIngress, wantEgress bool) {
		t.Helper()
		ingress, egress := Directions(policy)
		require.Equal(t, []bool{wantIngress, wantEgress}, []bool{ingress, egress})
	}
	is(true, false)
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	is(true, true)
	policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	is(false, true)
}
