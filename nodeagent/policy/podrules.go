package policy

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"kontiki/nodeagent/nftables"
)

// rulesOfPod binds a pod's addresses to the policies that select it, for each direction; nil if none does.
func rulesOfPod(pod boundPod, in, out []*networkingv1.NetworkPolicy) *nftables.Ruleset {
	if len(in)+len(out) == 0 {
		return nil
	}
	r := nftables.NewRuleset()
	for _, address := range pod.addresses {
		f := familyOf(address)
		isolate(r, address)
		for d, policies := range map[direction][]*networkingv1.NetworkPolicy{ingress: in, egress: out} {
			if len(policies) == 0 {
				continue
			}
			chain := podChain(d, f, pod.pod)
			r.Elements[nftables.Element{In: d.boundMap(f), Key: address.String()}] = "goto " + chain
			rules := make([]string, 0, len(policies)+1)
			for _, policy := range policies {
				rules = append(rules, "jump "+policyChain(d, f, policy))
			}
			r.Chains[chain] = append(rules, "drop")
		}
	}
	return r
}

// closed lets nobody but their node reach these addresses, nor them anybody.
func closed(addresses []netip.Addr) *nftables.Ruleset {
	r := nftables.NewRuleset()
	for _, address := range addresses {
		isolate(r, address)
		for _, d := range []direction{ingress, egress} {
			r.Elements[nftables.Element{In: d.boundMap(familyOf(address)), Key: address.String()}] = "goto " + closedChain
		}
	}
	return r
}

// isolate notes an address that something binds.
func isolate(r *nftables.Ruleset, address netip.Addr) {
	f := familyOf(address)
	r.Elements[nftables.Element{In: f.isolatedSet(), Key: address.String()}] = ""
	r.Elements[nftables.Element{In: f.selfSet(), Key: fmt.Sprintf("%s . %s", address, address)}] = ""
}

// podChain is the name of a pod's chain. The name of the pod is in it for the reader, as far as it fits.
func podChain(d direction, f family, pod *corev1.Pod) string {
	return fmt.Sprintf("%s%s/%s/%.80s/%s", d.chain, f.suffix, pod.Namespace, pod.Name, pod.UID)
}
