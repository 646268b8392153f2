package policy

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kontiki/internal/policypeers"
)

// host is an end of a flow: a pod or, without one, a machine outside.
type host struct {
	name      string
	node      string
	pod       *corev1.Pod
	namespace *corev1.Namespace
	addresses []string // IPv4, IPv6
}

// model says what NetworkPolicies allow, as the API's documentation has it, word by word.
type model []*networkingv1.NetworkPolicy

// allows says whether a client may open a flow to a port of a server. family is the index of the addresses it uses.
func (m model) allows(client, server *host, family int, protocol corev1.Protocol, port int32) bool {
	if client == server {
		return true // "A Pod cannot block access to itself"
	}
	out, in := true, true
	if client.pod != nil {
		out = m.agrees(client, server, server, family, protocol, port, false)
	}
	if server.pod != nil {
		in = m.agrees(server, client, server, family, protocol, port, true)
	}
	return out && in
}

// agrees says whether the policies of one end allow the other: "the connection is allowed if no policy selects the pod for
// the direction, or any of its rules matches".
func (m model) agrees(pod, other, server *host, family int, protocol corev1.Protocol, port int32, ingress bool) bool {
	isolated := false
	for _, p := range m {
		if p.Namespace != pod.pod.Namespace || !picks(&p.Spec.PodSelector, pod.pod.Labels) {
			continue
		}
		about := networkingv1.PolicyTypeEgress
		if ingress {
			about = networkingv1.PolicyTypeIngress
		}
		if !slices.Contains(p.Spec.PolicyTypes, about) {
			continue
		}
		isolated = true
		if ingress {
			for _, r := range p.Spec.Ingress {
				if anyPeer(p.Namespace, r.From, other, family) && anyPort(r.Ports, server, protocol, port) {
					return true
				}
			}
			continue
		}
		for _, r := range p.Spec.Egress {
			named, numbers := split(r.Ports)
			if anyPeer(p.Namespace, r.To, other, family) && (len(r.Ports) == 0 || len(numbers) > 0 && anyPort(numbers, server, protocol, port)) {
				return true
			}
			// Port names are looked up at pods, which ipBlocks are not about.
			pods := slices.DeleteFunc(slices.Clone(r.To), func(p networkingv1.NetworkPolicyPeer) bool { return p.IPBlock != nil })
			if len(named) > 0 && (len(r.To) == 0 || len(pods) > 0 && anyPeer(p.Namespace, pods, other, family)) && anyPort(named, server, protocol, port) {
				return true
			}
		}
	}
	return !isolated
}

func split(ports []networkingv1.NetworkPolicyPort) (named, numbers []networkingv1.NetworkPolicyPort) {
	for _, p := range ports {
		if p.Port != nil && p.Port.Type == intstr.String {
			named = append(named, p)
		} else {
			numbers = append(numbers, p)
		}
	}
	return named, numbers
}

func picks(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

func anyPeer(namespace string, peers []networkingv1.NetworkPolicyPeer, other *host, family int) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			address := netip.MustParseAddr(other.addresses[family])
			return netip.MustParsePrefix(p.IPBlock.CIDR).Contains(address) && !slices.ContainsFunc(p.IPBlock.Except, func(except string) bool {
				return netip.MustParsePrefix(except).Contains(address)
			})
		}
		if other.pod == nil {
			return false
		}
		if p.NamespaceSelector == nil && other.pod.Namespace != namespace || p.NamespaceSelector != nil && !picks(p.NamespaceSelector, other.namespace.Labels) {
			return false
		}
		return p.PodSelector == nil || picks(p.PodSelector, other.pod.Labels)
	})
}

func anyPort(ports []networkingv1.NetworkPolicyPort, server *host, protocol corev1.Protocol, port int32) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		switch {
		case *p.Protocol != protocol:
			return false
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			return server.pod != nil && policypeers.NumberOf(server.pod, policypeers.PortName{Protocol: protocol, Name: p.Port.StrVal}) == port
		case p.EndPort != nil:
			return p.Port.IntVal <= port && port <= *p.EndPort
		}
		return p.Port.IntVal == port
	})
}
