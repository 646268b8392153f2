package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
)

// How often a namespace that still has content is looked at: its last object may be gone at any time, and no event tells,
// because no informer covers every kind.
const (
	namespaceRecheck     = 500 * time.Millisecond
	namespaceRecheckSlow = 5 * time.Second
	namespaceSlowAfter   = time.Minute
)

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

// namespace empties a namespace that is being deleted: it deletes every resource that discovery knows, pods before all
// others (KEP-5080: a pod should not outlive the Secrets and NetworkPolicies that it relies on), and then removes the
// finalizer "kubernetes" from spec.finalizers, upon which the API server removes the namespace. Meanwhile conditions say
// what remains and why.
type namespace struct {
	client     kubernetes.Interface
	discovery  discovery.DiscoveryInterface
	metadata   metadata.Interface
	namespaces corelisters.NamespaceLister
	now        func() time.Time
}

func addNamespace(m *manager) error {
	client, err := m.client("namespace")
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(m.restConfig("namespace"))
	if err != nil {
		return fmt.Errorf("controllers: metadata client: %w", err)
	}
	namespaces := m.shared.Core().V1().Namespaces()
	n := &namespace{client: client, discovery: client.Discovery(), metadata: meta, namespaces: namespaces.Lister(), now: time.Now}
	c := m.add("namespace", 4, n)
	watch(c, namespaces.Informer(), requestFor[*corev1.Namespace])
	return nil
}

func (n *namespace) Reconcile(ctx context.Context, req Request) (Result, error) {
	ns, err := n.namespaces.Get(req.Name)
	if apierrors.IsNotFound(err) || err == nil && (ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes)) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	left := n.empty(ctx, ns.Name)
	if left.nothing() {
		return Result{}, n.finalize(ctx, ns)
	}
	if err := n.report(ctx, ns, left); err != nil {
		return Result{}, err
	}
	if n.now().Sub(ns.DeletionTimestamp.Time) > namespaceSlowAfter {
		return Result{RequeueAfter: namespaceRecheckSlow}, nil
	}
	return Result{RequeueAfter: namespaceRecheck}, nil
}

// empty deletes what it can, and returns what is left. Groups whose discovery fails (an aggregated API that is down) keep
// the namespace: something of them may be in it.
func (n *namespace) empty(ctx context.Context, name string) *leftovers {
	left := newLeftovers()
	resources, err := deletableResources(n.discovery, true)
	left.discoveryErr = err
	slices.SortStableFunc(resources, func(a, b resource) int { return boolRank(b.gvr == podsResource) - boolRank(a.gvr == podsResource) })
	for _, res := range resources {
		if err := n.emptyResource(ctx, name, res, left); err != nil {
			left.deleteErrs = append(left.deleteErrs, fmt.Errorf("%s: %w", res.gvr.GroupResource(), err))
		}
		if res.gvr == podsResource && !left.nothing() {
			return left // pods first
		}
	}
	return left
}

func (n *namespace) emptyResource(ctx context.Context, name string, res resource, left *leftovers) error {
	client := n.metadata.Resource(res.gvr).Namespace(name)
	remaining, err := client.List(ctx, metav1.ListOptions{})
	if gone(err) || err == nil && len(remaining.Items) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	if res.verbs.Has("deletecollection") {
		err = client.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	} else {
		err = deleteEach(ctx, client, remaining.Items, metav1.DeleteOptions{PropagationPolicy: &background})
	}
	if err != nil && !gone(err) {
		return err
	}
	remaining, err = client.List(ctx, metav1.ListOptions{})
	if gone(err) {
		return nil
	}
	if err == nil {
		left.add(res.gvr.GroupResource(), remaining.Items)
	}
	return err
}

func deleteEach(ctx context.Context, client metadata.ResourceInterface, items []metav1.PartialObjectMetadata, options metav1.DeleteOptions) error {
	var errs []error
	for _, item := range items {
		if err := client.Delete(ctx, item.Name, options); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// gone: the resource itself is no longer served, e.g. its CRD was deleted since discovery, or does not know the verb.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) }

// finalize removes our finalizer. Others in spec.finalizers are for others to remove.
func (n *namespace) finalize(ctx context.Context, ns *corev1.Namespace) error {
	update := ns.DeepCopy()
	update.Spec.Finalizers = slices.DeleteFunc(update.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	_, err := n.client.CoreV1().Namespaces().Finalize(ctx, update, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

func (n *namespace) report(ctx context.Context, ns *corev1.Namespace, left *leftovers) error {
	update := ns.DeepCopy()
	left.conditions(&update.Status, n.now())
	if equality.Semantic.DeepEqual(update.Status, ns.Status) {
		return nil
	}
	_, err := n.client.CoreV1().Namespaces().UpdateStatus(ctx, update, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}
