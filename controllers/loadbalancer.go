package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"kontiki/internal/loadbalancer"
)

// loadBalancer gives Services of type LoadBalancer addresses of a pool: one of each IP family that the Service and the pool
// have. Package loadbalancer says how an address is held. Nodes announce what is in the status. A request names the Service.
//
// What cannot be given is told in the condition loadbalancer.Assigned and an event, and tried again when an address becomes
// free. An address that is held is kept as long as the Service wants one and the pool has it.
type loadBalancer struct {
	client    kubernetes.Interface
	pool      loadbalancer.Pool
	services  corelisters.ServiceLister
	addresses networkinglisters.IPAddressLister
	events    record.EventRecorder
}

func addLoadBalancer(m *manager) error {
	if len(m.config.LoadBalancerCIDRs) == 0 {
		return nil
	}
	client, err := m.client("load-balancer")
	if err != nil {
		return err
	}
	services, addresses := m.shared.Core().V1().Services(), m.shared.Networking().V1().IPAddresses()
	r := &loadBalancer{
		client: client, pool: m.config.LoadBalancerCIDRs, services: services.Lister(), addresses: addresses.Lister(), events: m.recorder("load-balancer"),
	}
	c := m.add("load-balancer", 1, r)
	watch(c, services.Informer(), requestFor[*corev1.Service])
	watch(c, addresses.Informer(), r.concerned)
	return nil
}

// concerned are the Services that an IPAddress matters to: the one that holds it, and those that wait for one.
func (r *loadBalancer) concerned(address *networkingv1.IPAddress) []Request {
	if address.Labels[networkingv1.LabelManagedBy] != loadbalancer.ManagedBy {
		return nil
	}
	out := []Request{holderOf(address)}
	list, _ := r.services.List(labels.Everything()) // a lister over a cache does not fail
	for _, s := range list {
		if waits(s) {
			out = append(out, requestFor(s)...)
		}
	}
	return out
}

// assigned is the reason of the condition loadbalancer.Assigned where nothing is wanting.
const assigned = "Assigned"

// waits says whether a Service has not all that it wants; one that has an address of one IP family may wait for one of the other.
func waits(s *corev1.Service) bool {
	c := meta.FindStatusCondition(s.Status.Conditions, loadbalancer.Assigned)
	return loadbalancer.Wanted(s) && (c == nil || c.Reason != assigned)
}

func holderOf(address *networkingv1.IPAddress) Request {
	parent := ptr.Deref(address.Spec.ParentRef, networkingv1.ParentReference{})
	return Request{types.NamespacedName{Namespace: parent.Namespace, Name: parent.Name}}
}

// Reconcile implements Reconciler. What is held is asked of the API server each time: a cache that lags would have a Service
// take a second address.
func (r *loadBalancer) Reconcile(ctx context.Context, req Request) (Result, error) {
	s, err := r.services.Services(req.Namespace).Get(req.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return Result{}, err
	}
	if err != nil {
		s = nil
	}
	told := s != nil && meta.FindStatusCondition(s.Status.Conditions, loadbalancer.Assigned) != nil
	wanted := s != nil && loadbalancer.Wanted(s)
	if !wanted && !told && !r.mayHold(req) {
		return Result{}, nil // most Services
	}
	all, err := r.client.NetworkingV1().IPAddresses().List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{networkingv1.LabelManagedBy: loadbalancer.ManagedBy}.String(),
	})
	if err != nil {
		return Result{}, err
	}
	held := heldBy(req, all.Items)
	if !wanted {
		if told {
			if err := r.writeStatus(ctx, s, nil, nil); err != nil {
				return Result{}, err
			}
		}
		return Result{}, r.release(ctx, held, nil)
	}
	given, refused := r.give(ctx, s, all.Items)
	if err := r.writeStatus(ctx, s, given, refused); err != nil {
		return Result{}, err
	}
	if err := r.release(ctx, held, given); err != nil {
		return Result{}, err
	}
	if passes(refused) {
		return Result{}, refused // again soon
	}
	return Result{}, nil
}

// passes says whether an error, or one of several, may pass by itself: it is the API server's, and not that there is no address.
func passes(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(all.Unwrap(), passes)
	}
	var none *errNoAddress
	return err != nil && !errors.As(err, &none)
}

// mayHold says whether the cache knows of an address that a Service has held.
func (r *loadBalancer) mayHold(req Request) bool {
	list, _ := r.addresses.List(labels.SelectorFromSet(labels.Set{networkingv1.LabelManagedBy: loadbalancer.ManagedBy}))
	return slices.ContainsFunc(list, func(a *networkingv1.IPAddress) bool { return holderOf(a) == req })
}

// heldBy are the addresses of the Service of a request, also of an earlier one of its name.
func heldBy(req Request, all []networkingv1.IPAddress) (held []networkingv1.IPAddress) {
	for _, a := range all {
		if holderOf(&a) == req {
			held = append(held, a)
		}
	}
	return held
}

// errNoAddress says why a Service has no address until something changes.
type errNoAddress struct{ reason, message string }

func (e *errNoAddress) Error() string { return e.message }

// give returns the addresses that the Service now holds, in the order of its families, and why not more.
func (r *loadBalancer) give(ctx context.Context, s *corev1.Service, all []networkingv1.IPAddress) ([]netip.Addr, error) {
	requested, err := loadbalancer.Requested(s)
	if err != nil {
		return nil, &errNoAddress{"InvalidAddress", "wanted: " + err.Error()}
	}
	for _, a := range requested {
		if !r.pool.Contains(a) {
			return nil, &errNoAddress{"NotInPool", fmt.Sprintf("wanted address %s is not in the pool %v", a, r.pool)}
		}
	}
	var given []netip.Addr
	var refused []error
	for _, family := range s.Spec.IPFamilies {
		isIPv6 := family == corev1.IPv6Protocol
		if !r.pool.HasFamily(isIPv6) {
			continue
		}
		a, err := r.giveOne(ctx, s, isIPv6, requested, all)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		given = append(given, a)
	}
	if len(given)+len(refused) == 0 {
		refused = append(refused, &errNoAddress{"NoPool", fmt.Sprintf("the pool %v has no addresses of the Service's IP families %v", r.pool, s.Spec.IPFamilies)})
	}
	return given, errors.Join(refused...)
}

func (r *loadBalancer) giveOne(ctx context.Context, s *corev1.Service, isIPv6 bool, requested []netip.Addr, all []networkingv1.IPAddress) (netip.Addr, error) {
	ofFamily := func(a netip.Addr) bool { return a.Is6() == isIPv6 }
	wish := slices.IndexFunc(requested, ofFamily)
	taken := map[string]bool{}
	for _, h := range all {
		taken[h.Name] = true
		a, err := netip.ParseAddr(h.Name)
		if err == nil && ofFamily(a) && h.Labels[loadbalancer.UIDLabel] == string(s.UID) && r.pool.Contains(a) && (wish < 0 || requested[wish] == a) {
			return a, nil
		}
	}
	if wish >= 0 {
		others, err := r.claim(ctx, s, requested[wish])
		if others {
			err = &errNoAddress{"AddressTaken", fmt.Sprintf("wanted address %s is another Service's", requested[wish])}
		}
		return requested[wish], err
	}
	for a := range r.pool.All(isIPv6) {
		if taken[a.String()] {
			continue
		}
		if others, err := r.claim(ctx, s, a); !others {
			return a, err
		}
	}
	return netip.Addr{}, &errNoAddress{"PoolExhausted", fmt.Sprintf("every address of the pool %v is taken", r.pool)}
}

// claim takes an address for a Service, if nobody has it.
func (r *loadBalancer) claim(ctx context.Context, s *corev1.Service, a netip.Addr) (taken bool, err error) {
	_, err = r.client.NetworkingV1().IPAddresses().Create(ctx, &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: a.String(), Labels: map[string]string{
			networkingv1.LabelManagedBy: loadbalancer.ManagedBy, loadbalancer.UIDLabel: string(s.UID),
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: s.Namespace, Name: s.Name}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return true, nil
	}
	return false, err
}

// release gives back what is held and not in keep. It comes after the status: nobody is told of an address that may be
// another's.
func (r *loadBalancer) release(ctx context.Context, held []networkingv1.IPAddress, keep []netip.Addr) error {
	var errs []error
	for _, h := range held {
		if a, err := netip.ParseAddr(h.Name); err == nil && slices.Contains(keep, a) {
			continue
		}
		err := r.client.NetworkingV1().IPAddresses().Delete(ctx, h.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &h.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// writeStatus tells what a Service has, and why not more. One that is none of ours any more has nothing of it left.
func (r *loadBalancer) writeStatus(ctx context.Context, s *corev1.Service, given []netip.Addr, refused error) error {
	next := s.DeepCopy()
	next.Status.LoadBalancer.Ingress = nil
	for _, a := range given {
		next.Status.LoadBalancer.Ingress = append(next.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{
			IP: a.String(), IPMode: ptr.To(corev1.LoadBalancerIPModeVIP),
		})
	}
	condition := metav1.Condition{
		Type: loadbalancer.Assigned, Status: metav1.ConditionTrue, Reason: assigned, Message: "nodes announce the addresses",
		ObservedGeneration: s.Generation,
	}
	var why *errNoAddress
	if refused != nil {
		condition.Reason, condition.Message = "Failed", refused.Error()
		if errors.As(refused, &why) {
			condition.Reason = why.reason
		}
		if len(given) == 0 {
			condition.Status = metav1.ConditionFalse
		}
	}
	if loadbalancer.Wanted(s) {
		meta.SetStatusCondition(&next.Status.Conditions, condition)
	} else {
		meta.RemoveStatusCondition(&next.Status.Conditions, loadbalancer.Assigned)
	}
	if equality.Semantic.DeepEqual(s.Status, next.Status) {
		return nil
	}
	if _, err := r.client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if why != nil {
		r.events.Event(s, corev1.EventTypeWarning, "LoadBalancerAddress", why.message)
	}
	return nil
}
