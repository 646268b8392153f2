package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"kontiki/internal/policypeers"
	"kontiki/nodeagent/nftables"
)

// policyRules is the chains of a policy, one for each direction and family, and the sets that they ask: those of the peers
// that its rules name, and of ports that they have by name. When a peer comes or goes, only elements change.
type policyRules struct {
	*nftables.Ruleset
	policy *networkingv1.NetworkPolicy
	peers  []*discoveryv1.EndpointSlice // all of the policy
	bound  []boundPod                   // pods of this node that it selects
}

// boundPod is a pod of this node with the addresses that it has.
type boundPod struct {
	pod       *corev1.Pod
	addresses []netip.Addr
}

// rulesOf makes the rules of a policy that binds pods of this node.
func rulesOf(policy *networkingv1.NetworkPolicy, peers []*discoveryv1.EndpointSlice, bound []boundPod) *nftables.Ruleset {
	p := &policyRules{Ruleset: nftables.NewRuleset(), policy: policy, peers: peers, bound: bound}
	in, out := policypeers.Directions(policy)
	for _, f := range familiesOf(bound) {
		if in {
			chain := policyChain(ingress, f, policy)
			p.Chains[chain] = []string{}
			for _, rule := range policy.Spec.Ingress {
				p.Chains[chain] = append(p.Chains[chain], p.ingressRule(f, rule)...)
			}
		}
		if out {
			chain := policyChain(egress, f, policy)
			p.Chains[chain] = []string{}
			for _, rule := range policy.Spec.Egress {
				p.Chains[chain] = append(p.Chains[chain], p.egressRule(f, rule)...)
			}
		}
	}
	return p.Ruleset
}

func familiesOf(bound []boundPod) []family {
	found := map[family]bool{}
	for _, b := range bound {
		for _, a := range b.addresses {
			found[familyOf(a)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b family) int { return strings.Compare(a.suffix, b.suffix) })
}

// policyChain is the name of a policy's chain.
func policyChain(d direction, f family, policy *networkingv1.NetworkPolicy) string {
	return d.chain + f.suffix + "/" + policyName(policy)
}

// maxNameLength bounds the part of nftables' names (at most 255 bytes) that comes from names of objects.
const maxNameLength = 180

func policyName(policy *networkingv1.NetworkPolicy) string {
	name := policy.Namespace + "/" + policy.Name
	if len(name) > maxNameLength {
		digest := sha256.Sum256([]byte(name))
		name = name[:maxNameLength-17] + "-" + hex.EncodeToString(digest[:8])
	}
	return name
}

// ingressRule is the lines of a rule: each kind of client with each kind of port.
func (p *policyRules) ingressRule(f family, rule networkingv1.NetworkPolicyIngressRule) (lines []string) {
	ports := numbers(rule.Ports)
	for _, name := range policypeers.PortNames(rule.Ports) {
		ports = append(ports, atServer(f, p.ownPorts(f, name))...)
	}
	selection := policypeers.OfIngress(p.policy.Namespace, rule)
	for _, client := range p.ends(f, f.client(), rule.From, selection) {
		for _, port := range ports {
			lines = append(lines, line(client, port, ingress.allowed))
		}
	}
	return lines
}

// egressRule is the lines of a rule. A port that has a name has a number at each peer: these are in one set.
func (p *policyRules) egressRule(f family, rule networkingv1.NetworkPolicyEgressRule) (lines []string) {
	selection := policypeers.OfEgress(p.policy.Namespace, rule)
	for _, server := range p.ends(f, f.server(), rule.To, selection) {
		for _, port := range numbers(rule.Ports) {
			lines = append(lines, line(server, port, egress.allowed))
		}
	}
	if selection != nil && len(policypeers.PortNames(rule.Ports)) > 0 {
		for _, port := range atServer(f, p.peerPorts(f, selection)) {
			lines = append(lines, line("", port, egress.allowed))
		}
	}
	return lines
}

func line(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// ends are matches of one end of a flow against peers, "" for all; none if no address of the family is among them.
func (p *policyRules) ends(f family, end string, peers []networkingv1.NetworkPolicyPeer, selection *policypeers.Selection) (matches []string) {
	if len(peers) == 0 {
		return []string{""}
	}
	spans := spansOf(peers, f.isIPv6)
	if len(spans) == 1 && spans[0].isEverything() {
		return []string{""}
	}
	if len(spans) > 0 {
		texts := make([]string, len(spans))
		for i, s := range spans {
			texts[i] = s.String()
		}
		matches = append(matches, fmt.Sprintf("%s { %s }", end, strings.Join(texts, ", ")))
	}
	if selection != nil {
		matches = append(matches, fmt.Sprintf("%s @%s", end, p.peerSet(f, selection)))
	}
	return matches
}

// numbers are matches of the ports that have numbers, "" for all traffic. The port is the server's, which a packet has at
// its one end or the other.
func numbers(ports []networkingv1.NetworkPolicyPort) (matches []string) {
	if len(ports) == 0 {
		return []string{""}
	}
	whole, some := map[string]bool{}, map[string][]portSpan{}
	for _, p := range ports {
		protocol := strings.ToLower(string(ptr.Deref(p.Protocol, corev1.ProtocolTCP)))
		switch {
		case p.Port == nil:
			whole[protocol] = true
		case p.Port.Type == intstr.Int:
			some[protocol] = append(some[protocol], portSpan{p.Port.IntVal, max(ptr.Deref(p.EndPort, 0), p.Port.IntVal)})
		}
	}
	for _, protocol := range []string{"tcp", "udp", "sctp"} {
		if whole[protocol] {
			matches = append(matches, "meta l4proto "+protocol)
		} else if spans := joinedPorts(some[protocol]); len(spans) > 0 {
			texts := make([]string, len(spans))
			for i, s := range spans {
				texts[i] = s.String()
			}
			in := strings.Join(texts, ", ")
			matches = append(matches,
				fmt.Sprintf("ct direction original meta l4proto %s th dport { %s }", protocol, in),
				fmt.Sprintf("ct direction reply meta l4proto %s th sport { %s }", protocol, in))
		}
	}
	return matches
}

// atServer are matches of the server's address, protocol and port against a set.
func atServer(f family, set string) []string {
	return []string{
		fmt.Sprintf("ct direction original %s . meta l4proto . th dport @%s", f.server(), set),
		fmt.Sprintf("ct direction reply %s . meta l4proto . th sport @%s", f.server(), set),
	}
}

// peerSet is the set of the addresses of a selection.
func (p *policyRules) peerSet(f family, selection *policypeers.Selection) string {
	name := fmt.Sprintf("peers%s/%s/%s", f.suffix, policyName(p.policy), selection.Key)
	p.Sets[name] = nftables.Set{Type: f.address}
	for _, slice := range p.slicesOf(selection) {
		for _, address := range policypeers.AddressesIn(slice, f.isIPv6) {
			p.Elements[nftables.Element{In: name, Key: address.String()}] = ""
		}
	}
	return name
}

// peerPorts is the set of the addresses of a selection, each with the numbers of the ports that the selection names.
func (p *policyRules) peerPorts(f family, selection *policypeers.Selection) string {
	name := fmt.Sprintf("ports%s/%s/%s", f.suffix, policyName(p.policy), selection.Key)
	p.addPortSet(f, name)
	for _, slice := range p.slicesOf(selection) {
		for _, address := range policypeers.AddressesIn(slice, f.isIPv6) {
			for _, port := range slice.Ports {
				p.addPort(name, address, ptr.Deref(port.Protocol, corev1.ProtocolTCP), ptr.Deref(port.Port, 0))
			}
		}
	}
	return name
}

// ownPorts is the set of the addresses of the bound pods, each with its number of a port.
func (p *policyRules) ownPorts(f family, port policypeers.PortName) string {
	name := fmt.Sprintf("ports%s/%s/%s/%s", f.suffix, policyName(p.policy), strings.ToLower(string(port.Protocol)), port.Name)
	p.addPortSet(f, name)
	for _, b := range p.bound {
		for _, address := range b.addresses {
			if familyOf(address) == f {
				p.addPort(name, address, port.Protocol, policypeers.NumberOf(b.pod, port))
			}
		}
	}
	return name
}

func (p *policyRules) addPortSet(f family, name string) {
	p.Sets[name] = nftables.Set{Type: f.address + " . inet_proto . inet_service"}
}

func (p *policyRules) addPort(set string, address netip.Addr, protocol corev1.Protocol, port int32) {
	if port > 0 {
		p.Elements[nftables.Element{In: set, Key: fmt.Sprintf("%s . %s . %d", address, strings.ToLower(string(protocol)), port)}] = ""
	}
}

// slicesOf are those of a selection. Labels can be written in any namespace: only slices of the policy's own count.
func (p *policyRules) slicesOf(selection *policypeers.Selection) []*discoveryv1.EndpointSlice {
	return slices.DeleteFunc(slices.Clone(p.peers), func(s *discoveryv1.EndpointSlice) bool {
		return s.Namespace != p.policy.Namespace || s.Labels[policypeers.LabelSelection] != selection.Key
	})
}
