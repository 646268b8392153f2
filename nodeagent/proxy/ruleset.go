package proxy

import (
	"fmt"
	"net/netip"
	"strings"

	"kontiki/nodeagent/nftables"
)

// Names in the table that elements refer to.
const (
	servicesMap  = "services"   // address . protocol . port : verdict
	nodePortsMap = "node-ports" // protocol . port : verdict
	refusedMap   = "refused"    // address . protocol . port : verdict, where no endpoint would take the traffic
	refusedPorts = "refused-node-ports"
	hairpinSet   = "hairpin" // address . address, of endpoints here that talk to themselves

	markChain   = "hide-source"
	refuseChain = "say-no"
)

// ruleset is the rules of one Service.
type ruleset struct{ *nftables.Ruleset }

func newRuleset() ruleset { return ruleset{nftables.NewRuleset()} }

// add writes the rules of a frontend with these endpoints.
//
// Up to three chains: "cluster/…" for traffic from inside, and what is decided beside it for traffic from outside:
// "local/…" for the endpoints on this node, "external/…" for who may come that way, and from whom the source is hidden.
// "sources/…" stands before it where a load balancer serves some networks only.
func (r ruleset) add(f *frontend, all []endpoint, at here, family family) {
	inside := near(all, at)
	if f.internalLocal {
		inside = localOf(all)
	}
	outside := near(all, at)
	if f.externalLocal {
		outside = localOf(all)
	}
	for _, e := range usable(all) {
		if e.local {
			r.Elements[nftables.Element{In: hairpinSet, Key: e.address.Addr().String() + " . " + e.address.Addr().String()}] = ""
		}
	}
	r.addService(f, f.cluster, r.balance(f, "cluster", inside, family), f.internalLocal)
	if !f.isExternal() {
		return
	}
	target := r.external(f, all, outside, at, family)
	for _, address := range f.external {
		r.addService(f, address, target, f.externalLocal)
	}
	if f.nodePort != 0 {
		verdict, in := "goto "+target, nodePortsMap
		if target == "" {
			verdict, in = refusal(f.externalLocal), refusedPorts
		}
		r.Elements[nftables.Element{In: in, Key: fmt.Sprintf("%s . %d", f.protocol, f.nodePort)}] = verdict
	}
	if target != "" && len(f.sources) > 0 && len(f.balanced) > 0 {
		target = r.restrict(f, target, family)
	}
	for _, address := range f.balanced {
		r.addService(f, address, target, f.externalLocal)
	}
}

// addService has traffic to an address and the frontend's port go to a chain or, without one, be refused.
func (r ruleset) addService(f *frontend, address netip.Addr, chain string, isLocal bool) {
	key := fmt.Sprintf("%s . %s . %d", address, f.protocol, f.port)
	if chain == "" {
		r.Elements[nftables.Element{In: refusedMap, Key: key}] = refusal(isLocal)
		return
	}
	r.Elements[nftables.Element{In: servicesMap, Key: key}] = "goto " + chain
}

// refusal is what becomes of traffic that no endpoint takes. Where another node might have one, silence: a refusal would be
// final for the client, while a load balancer tries another node.
func refusal(isLocal bool) string {
	if isLocal {
		return "drop"
	}
	return "goto " + refuseChain
}

// balance makes the chain that spreads connections over endpoints, and returns its name, "" if there are none.
func (r ruleset) balance(f *frontend, kind string, endpoints []endpoint, family family) (chain string) {
	if len(endpoints) == 0 {
		return ""
	}
	chain = kind + "/" + f.name()
	if f.affinity > 0 {
		r.Chains[chain] = r.stickyRules(f, endpoints, family)
		return chain
	}
	targets := make([]string, len(endpoints))
	for i, e := range endpoints {
		targets[i] = fmt.Sprintf("%d : %s . %d", i, e.address.Addr(), e.address.Port())
	}
	r.Chains[chain] = []string{fmt.Sprintf("meta l4proto %s dnat %s addr . port to numgen random mod %d map { %s }",
		f.protocol, family.word, len(endpoints), strings.Join(targets, ", "))}
	return chain
}

// stickyRules are those of a Service with session affinity: each endpoint has a chain that notes the client in a set, whose
// elements expire, and the sets are asked before the dice.
func (r ruleset) stickyRules(f *frontend, endpoints []endpoint, family family) (rules []string) {
	choices := make([]string, len(endpoints))
	for i, e := range endpoints {
		name := fmt.Sprintf("%s/%s/%d", f.name(), strings.ReplaceAll(e.address.Addr().String(), ":", "_"), e.address.Port())
		set, chain := fmt.Sprintf("affinity-%d/%s", int(f.affinity.Seconds()), name), "endpoint/"+name
		r.Sets[set] = nftables.Set{Type: family.address, Timeout: f.affinity}
		r.Chains[chain] = []string{
			fmt.Sprintf("update @%s { %s saddr }", set, family.word),
			fmt.Sprintf("meta l4proto %s dnat %s to %s", f.protocol, family.word, e.address),
		}
		rules = append(rules, fmt.Sprintf("%s saddr @%s goto %s", family.word, set, chain))
		choices[i] = fmt.Sprintf("%d : goto %s", i, chain)
	}
	return append(rules, fmt.Sprintf("numgen random mod %d vmap { %s }", len(endpoints), strings.Join(choices, " , ")))
}

// external makes the chain of traffic that comes to an address outside the cluster network, "" if nobody takes it.
func (r ruleset) external(f *frontend, all, outside []endpoint, at here, family family) (chain string) {
	chain = "external/" + f.name()
	if !f.externalLocal {
		kind := "cluster" // the same rules
		if f.internalLocal {
			kind = "outside"
		}
		balance := r.balance(f, kind, outside, family)
		if balance == "" {
			return ""
		}
		// The endpoint may be on another node, which would answer past this one: hide the source.
		r.Chains[chain] = []string{"jump " + markChain, "goto " + balance}
		return chain
	}
	// Local: clients keep their address. Pods and this node itself may use any endpoint, as through the cluster IP
	// (KEP-1138).
	everywhere := r.balance(f, "everywhere", near(all, at), family)
	if everywhere == "" {
		return ""
	}
	rules := []string{
		fmt.Sprintf("fib saddr type local jump %s", markChain),
		fmt.Sprintf("fib saddr type local goto %s", everywhere),
	}
	if family.pods.IsValid() {
		rules = append(rules, fmt.Sprintf("%s saddr %s goto %s", family.word, family.pods, everywhere))
	}
	if local := r.balance(f, "local", outside, family); local != "" {
		rules = append(rules, "goto "+local)
	} else {
		rules = append(rules, "drop")
	}
	r.Chains[chain] = rules
	return chain
}

// restrict makes a chain that lets the load balancer's source ranges and this node through to chain.
func (r ruleset) restrict(f *frontend, chain string, family family) string {
	ranges := make([]string, len(f.sources))
	for i, source := range f.sources {
		ranges[i] = source.String()
	}
	name := "sources/" + f.name()
	rules := make([]string, 0, len(ranges)+2)
	for _, source := range ranges { // one by one: in a set, ranges must not overlap
		rules = append(rules, fmt.Sprintf("%s saddr %s goto %s", family.word, source, chain))
	}
	r.Chains[name] = append(rules, "fib saddr type local goto "+chain, "drop")
	return name
}
