package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

var (
	webPods = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	dbPods  = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"db"}}}}
	teamB   = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
	all     = &metav1.LabelSelector{}
)

// somePeers are the kinds of peers that a rule can have.
var somePeers = [][]networkingv1.NetworkPolicyPeer{
	nil,
	{{PodSelector: dbPods}},
	{{NamespaceSelector: teamB}},
	{{NamespaceSelector: all, PodSelector: webPods}},
	{{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.244.1.0/28", "10.244.1.8/29"}}}, {IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}}},
	{{IPBlock: &networkingv1.IPBlock{CIDR: "198.51.100.2/32"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "fd00:244:2::/64", Except: []string{"fd00:244:2::b/128"}}}, {PodSelector: all}},
}

func port(protocol corev1.Protocol, value string, end int32) networkingv1.NetworkPolicyPort {
	p := networkingv1.NetworkPolicyPort{Protocol: &protocol}
	if value != "" {
		p.Port = ptr.To(intstr.Parse(value))
	}
	if end != 0 {
		p.EndPort = &end
	}
	return p
}

// somePorts are the kinds of ports that a rule can have.
var somePorts = [][]networkingv1.NetworkPolicyPort{
	nil,
	{port(corev1.ProtocolUDP, "80", 0)},
	{port(corev1.ProtocolTCP, "", 0), port(corev1.ProtocolUDP, "8000", 8999), port(corev1.ProtocolUDP, "8080", 9000)},
	{port(corev1.ProtocolUDP, "api", 0), port(corev1.ProtocolTCP, "api", 0)},
	{port(corev1.ProtocolUDP, "api", 0), port(corev1.ProtocolUDP, "8080", 0), port(corev1.ProtocolSCTP, "80", 0)},
}

// onePolicy makes a policy of a direction with at most one rule.
func onePolicy(namespace string, pods *metav1.LabelSelector, about networkingv1.PolicyType, hasRule bool, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: *pods, PolicyTypes: []networkingv1.PolicyType{about}},
	}
	switch {
	case !hasRule:
	case about == networkingv1.PolicyTypeIngress:
		p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: ports}}
	default:
		p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: peers, Ports: ports}}
	}
	return p
}

// singles are all policies of one rule or none, of both directions, for web pods of shop and all pods of back in turn.
func singles() (list []*networkingv1.NetworkPolicy) {
	add := func(hasRule bool, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) {
		for _, about := range []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress} {
			list = append(list, onePolicy("shop", webPods, about, hasRule, peers, ports), onePolicy("back", all, about, hasRule, peers, ports))
		}
	}
	add(false, nil, nil)
	for _, peers := range somePeers {
		for _, ports := range somePorts {
			add(true, peers, ports)
		}
	}
	return list
}

// TestPolicies puts every small policy, and many sets of them, in force one after the other, and tries all flows between all
// hosts each time. The UDP sockets stay the same throughout: every step also judges the flows that earlier steps opened.
func TestPolicies(t *testing.T) {
	w := newWorld(t)
	probes := w.allProbes()
	list := singles()
	step := 0
	try := func(policies ...*networkingv1.NetworkPolicy) {
		step++
		var set model
		for i, p := range policies {
			p = p.DeepCopy()
			p.Name, p.UID, p.Generation = fmt.Sprint("p", i), types.UID(fmt.Sprint(step, "-", i)), 1
			if step%3 == 0 && i == 0 { // a change of a policy, not a new one
				p.UID, p.Generation = "stays", int64(step)
			}
			set = append(set, p)
		}
		w.enforce(set)
		w.judge(fmt.Sprint("step", step), set, probes)
	}
	try()
	for _, p := range list {
		try(p)
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same ones every time
	for range 60 {
		var some []*networkingv1.NetworkPolicy
		for range 2 + random.IntN(4) {
			some = append(some, list[random.IntN(len(list))])
		}
		try(some...)
	}
	try()
}

// describe shows policies as their author would write them.
func describe(policies model) string {
	var text strings.Builder
	for _, p := range policies {
		out, _ := yaml.Marshal(p.Spec)
		fmt.Fprintf(&text, "# %s/%s\n%s", p.Namespace, p.Name, out)
	}
	return text.String()
}
