package policy

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/policypeers"
	"kontiki/nodeagent/nftables"
)

// binding is the policies that select a pod, by key.
type binding map[string]bool

// sync computes the rules of the pods and policies that a batch concerns, and has the kernel follow.
func (e *Enforcer) sync(ctx context.Context, b *batch) error {
	began := time.Now()
	pods, policies := e.concerned(b)
	changes, given := map[string]*nftables.Ruleset{}, map[types.UID][]netip.Addr{}
	for uid := range pods {
		given[uid] = e.addresses.get(uid)
		before := e.bindings[uid]
		changes["pod "+string(uid)] = e.bind(uid, given[uid])
		for key := range before {
			policies[key] = true
		}
		for key := range e.bindings[uid] {
			policies[key] = true
		}
	}
	for key := range policies {
		changes["policy "+key] = e.rulesOf(key)
	}
	if b.verify && e.table.Verify(ctx, forwardChain) {
		e.log.Warn("somebody has taken the rules of NetworkPolicies away, they are written anew")
	}
	if err := e.table.Apply(ctx, changes); err != nil {
		return err
	}
	for uid, addresses := range given {
		e.addresses.setWritten(uid, addresses)
	}
	e.log.Debug("rules written", "pods", len(pods), "policies", len(policies), "took", time.Since(began))
	return nil
}

// concerned are the pods and policies whose rules may be others now.
func (e *Enforcer) concerned(b *batch) (pods map[types.UID]bool, policies map[string]bool) {
	pods, policies = maps.Clone(b.pods), maps.Clone(b.policies)
	if b.all {
		for _, uid := range e.addresses.pods() {
			pods[uid] = true
		}
		for uid := range e.bindings {
			pods[uid] = true
		}
		for key := range e.bound {
			policies[key] = true
		}
		return pods, policies
	}
	for uid := range b.peers {
		for _, obj := range indexed[*networkingv1.NetworkPolicy](e.policies, byUID, string(uid)) {
			policies[keyOf(obj)] = true
		}
	}
	for key := range b.policies {
		policy := e.policyAt(key)
		for uid := range e.bound[key] {
			pods[uid] = true
		}
		if policy == nil {
			continue
		}
		for _, pod := range indexed[*corev1.Pod](e.pods, cache.NamespaceIndex, policy.Namespace) {
			if e.selectors.of(policy).Matches(labels.Set(pod.Labels)) {
				pods[pod.UID] = true
			}
		}
	}
	return pods, policies
}

// bind finds the policies of a pod, and makes its rules.
func (e *Enforcer) bind(uid types.UID, addresses []netip.Addr) *nftables.Ruleset {
	for key := range e.bindings[uid] {
		if delete(e.bound[key], uid); len(e.bound[key]) == 0 {
			delete(e.bound, key)
		}
	}
	delete(e.bindings, uid)
	if len(addresses) == 0 {
		return nil
	}
	pod := e.pod(uid)
	if pod == nil {
		return closed(addresses) // nobody knows what it may
	}
	if pod.Spec.HostNetwork {
		return nil
	}
	var in, out []*networkingv1.NetworkPolicy
	of := binding{}
	for _, policy := range indexed[*networkingv1.NetworkPolicy](e.policies, cache.NamespaceIndex, pod.Namespace) {
		if !e.selectors.of(policy).Matches(labels.Set(pod.Labels)) {
			continue
		}
		isIn, isOut := policypeers.Directions(policy)
		if isIn {
			in = append(in, policy)
		}
		if isOut {
			out = append(out, policy)
		}
		key := keyOf(policy)
		of[key] = true
		if e.bound[key] == nil {
			e.bound[key] = map[types.UID]bool{}
		}
		e.bound[key][uid] = true
	}
	if len(of) > 0 {
		e.bindings[uid] = of
	}
	byName := func(a, b *networkingv1.NetworkPolicy) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(in, byName)
	slices.SortFunc(out, byName)
	return rulesOfPod(boundPod{pod, addresses}, in, out)
}

// rulesOf makes the rules of a policy; nil if it selects no pod of this node.
func (e *Enforcer) rulesOf(key string) *nftables.Ruleset {
	policy := e.policyAt(key)
	if policy == nil {
		e.selectors.drop(e.policies)
		return nil
	}
	var bound []boundPod
	for uid := range e.bound[key] {
		if pod := e.pod(uid); pod != nil {
			bound = append(bound, boundPod{pod, e.addresses.get(uid)})
		}
	}
	if len(bound) == 0 {
		return nil
	}
	return rulesOf(policy, indexed[*discoveryv1.EndpointSlice](e.slices, policypeers.ByPolicy, string(policy.UID)), bound)
}

// pod is the object of a pod of this node, nil if there is none.
func (e *Enforcer) pod(uid types.UID) *corev1.Pod {
	for _, pod := range indexed[*corev1.Pod](e.pods, byUID, string(uid)) {
		return pod
	}
	return nil
}

func indexed[T any](from cache.Indexer, index, key string) []T {
	objects, _ := from.ByIndex(index, key) // the index is there
	out := make([]T, len(objects))
	for i, obj := range objects {
		out[i] = obj.(T)
	}
	return out
}

// selectors keeps the parsed podSelector of each policy, so that a pod that starts need not have all of them parsed.
type selectors map[types.UID]parsedSelector

type parsedSelector struct {
	generation int64
	selector   labels.Selector
}

// of is a policy's selector. One that does not parse, which the API refuses, selects nothing.
func (s selectors) of(policy *networkingv1.NetworkPolicy) labels.Selector {
	known, ok := s[policy.UID]
	if !ok || known.generation != policy.Generation {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			selector = labels.Nothing()
		}
		known = parsedSelector{policy.Generation, selector}
		s[policy.UID] = known
	}
	return known.selector
}

// drop forgets policies that are gone.
func (s selectors) drop(policies cache.Indexer) {
	maps.DeleteFunc(s, func(uid types.UID, _ parsedSelector) bool {
		return len(indexed[*networkingv1.NetworkPolicy](policies, byUID, string(uid))) == 0
	})
}
