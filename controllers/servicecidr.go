package controllers

import (
	"context"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
)

// serviceCIDRFinalizer keeps a range until no Service has an address of it. The name is Kubernetes'.
const serviceCIDRFinalizer = "networking.k8s.io/service-cidr-finalizer"

// serviceCIDRGrace is how long a range that is empty stays after it was taken out of use: an API server may have given out
// an address a moment before it saw that.
const serviceCIDRGrace = 10 * time.Second

// serviceCIDR says of each ServiceCIDR whether addresses may be taken from it, and lets one that is deleted go when the
// last of its addresses is free, or is also in another range (KEP-1880). A request names the ServiceCIDR.
type serviceCIDR struct {
	client    kubernetes.Interface
	cidrs     networkinglisters.ServiceCIDRLister
	addresses networkinglisters.IPAddressLister
}

func addServiceCIDR(m *manager) error {
	client, err := m.client("service-cidrs")
	if err != nil {
		return err
	}
	cidrs, addresses := m.shared.Networking().V1().ServiceCIDRs(), m.shared.Networking().V1().IPAddresses()
	r := &serviceCIDR{client: client, cidrs: cidrs.Lister(), addresses: addresses.Lister()}
	c := m.add("service-cidrs", 1, r)
	watch(c, cidrs.Informer(), func(*networkingv1.ServiceCIDR) []Request { return r.all(true) })
	watch(c, addresses.Informer(), func(*networkingv1.IPAddress) []Request { return r.all(false) })
	return nil
}

// all are the ServiceCIDRs, or those that wait for an address to become free.
func (r *serviceCIDR) all(staying bool) []Request {
	list, _ := r.cidrs.List(labels.Everything()) // a lister over a cache does not fail
	var out []Request
	for _, cidr := range list {
		if staying || cidr.DeletionTimestamp != nil {
			out = append(out, named(cidr.Name))
		}
	}
	return out
}

// Reconcile implements Reconciler.
func (r *serviceCIDR) Reconcile(ctx context.Context, req Request) (Result, error) {
	cidr, err := r.cidrs.Get(req.Name)
	if apierrors.IsNotFound(err) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	if cidr.DeletionTimestamp != nil {
		return r.retire(ctx, cidr)
	}
	if !slices.Contains(cidr.Finalizers, serviceCIDRFinalizer) {
		kept := cidr.DeepCopy()
		kept.Finalizers = append(kept.Finalizers, serviceCIDRFinalizer)
		if cidr, err = r.client.NetworkingV1().ServiceCIDRs().Update(ctx, kept, metav1.UpdateOptions{}); err != nil {
			return Result{}, err
		}
	}
	if meta.IsStatusConditionTrue(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady) {
		return Result{}, nil
	}
	return Result{}, r.setReady(ctx, cidr, metav1.Condition{Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready"})
}

// retire takes a range out of use, waits for its addresses, and lets it go.
func (r *serviceCIDR) retire(ctx context.Context, cidr *networkingv1.ServiceCIDR) (Result, error) {
	if !slices.Contains(cidr.Finalizers, serviceCIDRFinalizer) {
		return Result{}, nil
	}
	ready := meta.FindStatusCondition(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	if ready == nil || ready.Reason != networkingv1.ServiceCIDRReasonTerminating {
		return Result{}, r.setReady(ctx, cidr, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: networkingv1.ServiceCIDRReasonTerminating,
			Message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
		})
	}
	inUse, err := r.inUse(cidr)
	if err != nil || inUse {
		return Result{}, err // a change of an address brings it back
	}
	if left := serviceCIDRGrace - time.Since(ready.LastTransitionTime.Time); left > 0 {
		return Result{RequeueAfter: left}, nil
	}
	free := cidr.DeepCopy()
	free.Finalizers = slices.DeleteFunc(free.Finalizers, func(f string) bool { return f == serviceCIDRFinalizer })
	_, err = r.client.NetworkingV1().ServiceCIDRs().Update(ctx, free, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return Result{}, err
}

func (r *serviceCIDR) setReady(ctx context.Context, cidr *networkingv1.ServiceCIDR, ready metav1.Condition) error {
	next := cidr.DeepCopy()
	ready.Type = networkingv1.ServiceCIDRConditionReady
	meta.SetStatusCondition(&next.Status.Conditions, ready)
	_, err := r.client.NetworkingV1().ServiceCIDRs().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

// inUse says whether an address is in cidr and in no range that stays.
func (r *serviceCIDR) inUse(cidr *networkingv1.ServiceCIDR) (bool, error) {
	addresses, err := r.addresses.List(labels.Everything())
	if err != nil {
		return false, err
	}
	others, err := r.cidrs.List(labels.Everything())
	if err != nil {
		return false, err
	}
	others = slices.DeleteFunc(others, func(o *networkingv1.ServiceCIDR) bool { return o.Name == cidr.Name || o.DeletionTimestamp != nil })
	for _, address := range addresses {
		ip, err := netip.ParseAddr(address.Name)
		if err == nil && hasAddress(cidr, ip) && !slices.ContainsFunc(others, func(o *networkingv1.ServiceCIDR) bool { return hasAddress(o, ip) }) {
			return true, nil
		}
	}
	return false, nil
}

func hasAddress(cidr *networkingv1.ServiceCIDR, ip netip.Addr) bool {
	return slices.ContainsFunc(cidr.Spec.CIDRs, func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(ip)
	})
}
