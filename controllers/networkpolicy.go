package controllers

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/policypeers"
)

// networkPolicy looks up the pods that NetworkPolicies name as peers, for the nodes, which may not: package policypeers has
// what is written. Who is bound by a policy is no business of its. A request names the NetworkPolicy; the slices of one that
// is gone are the garbage collector's.
type networkPolicy struct {
	client     kubernetes.Interface
	policies   networkinglisters.NetworkPolicyLister
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
	slices     cache.Indexer
	parsed     parsedPolicies
}

func addNetworkPolicy(m *manager) error {
	client, err := m.client("network-policies")
	if err != nil {
		return err
	}
	core, found := m.shared.Core().V1(), m.shared.Discovery().V1().EndpointSlices().Informer()
	policies := m.shared.Networking().V1().NetworkPolicies()
	if err := found.AddIndexers(cache.Indexers{policypeers.ByPolicy: policypeers.IndexByPolicy}); err != nil {
		return err
	}
	r := &networkPolicy{
		client: client, policies: policies.Lister(), pods: core.Pods().Lister(), namespaces: core.Namespaces().Lister(),
		slices: found.GetIndexer(), parsed: parsedPolicies{of: map[types.UID]parsedPolicy{}},
	}
	c := m.add("network-policies", 2, r)
	watchUpdates(c, policies.Informer(), requestFor[*networkingv1.NetworkPolicy], func(before, after *networkingv1.NetworkPolicy) bool {
		return before.Generation != after.Generation || before.UID != after.UID
	})
	watchUpdates(c, core.Pods().Informer(), r.policiesNaming, func(before, after *corev1.Pod) bool {
		return !maps.Equal(before.Labels, after.Labels) || policypeers.Counts(before) != policypeers.Counts(after) ||
			!slices.Equal(before.Status.PodIPs, after.Status.PodIPs) || before.UID != after.UID
	})
	watchUpdates(c, core.Namespaces().Informer(), r.policiesAcross, func(before, after *corev1.Namespace) bool {
		return !maps.Equal(before.Labels, after.Labels)
	})
	watch(c, found, func(slice *discoveryv1.EndpointSlice) []Request {
		if policypeers.PolicyOf(slice) == "" {
			return nil
		}
		return requestForController[*discoveryv1.EndpointSlice]("NetworkPolicy")(slice)
	})
	return nil
}

// policiesNaming asks for the policies that a pod is a peer of.
func (r *networkPolicy) policiesNaming(pod *corev1.Pod) []Request {
	var set labels.Set
	if namespace, err := r.namespaces.Get(pod.Namespace); err == nil { // if it is not known yet, its coming wakes them
		set = namespace.Labels
	}
	return r.having(func(s *policypeers.Selection) bool { return s.Selects(pod, set) })
}

// policiesAcross asks for the policies that look at the labels of namespaces.
func (r *networkPolicy) policiesAcross(*corev1.Namespace) []Request {
	return r.having((*policypeers.Selection).CrossesNamespaces)
}

func (r *networkPolicy) having(matches func(*policypeers.Selection) bool) (out []Request) {
	all, _ := r.policies.List(labels.Everything()) // a lister over a cache does not fail
	for _, policy := range all {
		if slices.ContainsFunc(r.parsed.selections(policy), matches) {
			out = append(out, requestFor(policy)...)
		}
	}
	return out
}

// Reconcile implements Reconciler.
func (r *networkPolicy) Reconcile(ctx context.Context, req Request) (Result, error) {
	policy, err := r.policies.NetworkPolicies(req.Namespace).Get(req.Name)
	if apierrors.IsNotFound(err) {
		r.parsed.drop(r.policies)
		return Result{}, nil
	}
	if err != nil || policy.DeletionTimestamp != nil {
		return Result{}, err
	}
	objects, err := r.slices.ByIndex(policypeers.ByPolicy, string(policy.UID))
	if err != nil {
		return Result{}, err
	}
	plan := newPeerSlices(policy, objects)
	for _, selection := range r.parsed.selections(policy) {
		for _, group := range selection.Resolve(r) {
			plan.want(selection, &group)
		}
	}
	return Result{}, plan.write(ctx, r.client.DiscoveryV1().EndpointSlices(policy.Namespace))
}

// Namespaces implements policypeers.Pods.
func (r *networkPolicy) Namespaces() []*corev1.Namespace {
	all, _ := r.namespaces.List(labels.Everything()) // a lister over a cache does not fail
	return all
}

// PodsOf implements policypeers.Pods.
func (r *networkPolicy) PodsOf(namespace string) []*corev1.Pod {
	all, _ := r.pods.Pods(namespace).List(labels.Everything()) // a lister over a cache does not fail
	return all
}

// parsedPolicies keeps what policies select, so that the change of a pod need not parse the selectors of all of them.
type parsedPolicies struct {
	mu sync.Mutex // guards of; held over no call
	of map[types.UID]parsedPolicy
}

type parsedPolicy struct {
	generation int64
	selections []*policypeers.Selection
}

func (p *parsedPolicies) selections(policy *networkingv1.NetworkPolicy) []*policypeers.Selection {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.of[policy.UID]
	if !ok || known.generation != policy.Generation {
		known = parsedPolicy{policy.Generation, policypeers.Of(policy)}
		p.of[policy.UID] = known
	}
	return known.selections
}

// drop forgets policies that are gone.
func (p *parsedPolicies) drop(lister networkinglisters.NetworkPolicyLister) {
	all, _ := lister.List(labels.Everything()) // a lister over a cache does not fail
	there := make(map[types.UID]bool, len(all))
	for _, policy := range all {
		there[policy.UID] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.of, func(uid types.UID, _ parsedPolicy) bool { return !there[uid] })
}
