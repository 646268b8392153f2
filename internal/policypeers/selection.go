package policypeers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Selection is the pods that a rule names by labels and, of an egress rule, the names of their ports.
type Selection struct {
	// Key is a digest of what is selected: equal for rules of a policy that select the same.
	Key string

	namespace string // of the policy
	peers     []peer // none: all pods, whose ports are wanted
	ports     []PortName
}

// PortName is a port that a policy has by name.
type PortName struct {
	Protocol corev1.Protocol
	Name     string
}

// peer is a podSelector, a namespaceSelector, or both.
type peer struct {
	namespaces labels.Selector // nil: the policy's own namespace
	pods       labels.Selector
}

// OfIngress is whom an ingress rule of a policy in a namespace lets in; nil if it names no pods.
func OfIngress(namespace string, rule networkingv1.NetworkPolicyIngressRule) *Selection {
	return newSelection(namespace, rule.From, nil)
}

// OfEgress is whom an egress rule of a policy in a namespace lets out to; nil if it needs no pods to be known. A port name
// means the port that each destination has under it; of destinations that are no pods it means nothing.
func OfEgress(namespace string, rule networkingv1.NetworkPolicyEgressRule) *Selection {
	return newSelection(namespace, rule.To, PortNames(rule.Ports))
}

// PortNames lists the ports that a rule has by name, in order.
func PortNames(ports []networkingv1.NetworkPolicyPort) (names []PortName) {
	for _, p := range ports {
		if p.Port != nil && p.Port.Type == intstr.String {
			names = append(names, PortName{ptr.Deref(p.Protocol, corev1.ProtocolTCP), p.Port.StrVal})
		}
	}
	slices.SortFunc(names, func(a, b PortName) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(names)
}

func newSelection(namespace string, from []networkingv1.NetworkPolicyPeer, ports []PortName) *Selection {
	s := &Selection{namespace: namespace, ports: ports}
	var named []networkingv1.NetworkPolicyPeer
	for _, p := range from {
		if p.IPBlock == nil {
			named, s.peers = append(named, p), append(s.peers, newPeer(p))
		}
	}
	if len(named) == 0 && (len(from) > 0 || len(ports) == 0) {
		return nil
	}
	text, err := json.Marshal(map[string]any{"peers": named, "ports": ports})
	if err != nil {
		panic(err) // strings and maps of strings
	}
	digest := sha256.Sum256(text)
	s.Key = hex.EncodeToString(digest[:8])
	return s
}

// newPeer parses selectors. One that does not parse, which the API refuses, selects nothing.
func newPeer(p networkingv1.NetworkPolicyPeer) (out peer) {
	parse := func(s *metav1.LabelSelector) labels.Selector {
		parsed, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			return labels.Nothing()
		}
		return parsed
	}
	if p.NamespaceSelector != nil {
		out.namespaces = parse(p.NamespaceSelector)
	}
	out.pods = labels.Everything()
	if p.PodSelector != nil {
		out.pods = parse(p.PodSelector)
	}
	return out
}

// Of lists what the rules of a policy select, each once. Rules of a direction that the policy is not about count for nothing.
func Of(policy *networkingv1.NetworkPolicy) (all []*Selection) {
	ingress, egress := Directions(policy)
	add := func(s *Selection) {
		if s != nil && !slices.ContainsFunc(all, func(o *Selection) bool { return o.Key == s.Key }) {
			all = append(all, s)
		}
	}
	if ingress {
		for _, rule := range policy.Spec.Ingress {
			add(OfIngress(policy.Namespace, rule))
		}
	}
	if egress {
		for _, rule := range policy.Spec.Egress {
			add(OfEgress(policy.Namespace, rule))
		}
	}
	return all
}

// Directions says what a policy is about: its policyTypes or, where the API server has not filled them in, ingress always
// and egress if it has rules for it.
func Directions(policy *networkingv1.NetworkPolicy) (ingress, egress bool) {
	types := policy.Spec.PolicyTypes
	if len(types) == 0 {
		return true, len(policy.Spec.Egress) > 0
	}
	return slices.Contains(types, networkingv1.PolicyTypeIngress), slices.Contains(types, networkingv1.PolicyTypeEgress)
}
