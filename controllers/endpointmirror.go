//lint:file-ignore SA1019 Endpoints are deprecated, and clients still read them: this file is about them.

package controllers

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

const (
	mirrorControllerName = "endpointslicemirroring-controller.k8s.io"
	// maxMirrored is how many addresses of a subset are mirrored per IP family; Endpoints hold about as many.
	maxMirrored = 1000
)

var endpointsKind = corev1.SchemeGroupVersion.WithKind("Endpoints")

// endpointMirror copies Endpoints that users wrote for a Service without a selector into EndpointSlices, since service
// proxies and DNS read only those. One slice per subset and IP family, named after its ports.
type endpointMirror struct {
	client    kubernetes.Interface
	services  corelisters.ServiceLister
	endpoints corelisters.EndpointsLister
	slices    discoverylisters.EndpointSliceLister
}

func addEndpointMirror(m *manager) error {
	client, err := m.client("endpointslicemirroring")
	if err != nil {
		return err
	}
	core, found := m.shared.Core().V1(), m.shared.Discovery().V1().EndpointSlices()
	e := &endpointMirror{client: client, services: core.Services().Lister(), endpoints: core.Endpoints().Lister(), slices: found.Lister()}
	c := m.add("endpointmirror", 2, e)
	watch(c, core.Services().Informer(), requestFor[*corev1.Service])
	watch(c, core.Endpoints().Informer(), requestFor[*corev1.Endpoints])
	watch(c, found.Informer(), func(slice *discoveryv1.EndpointSlice) []Request {
		if slice.Labels[discoveryv1.LabelManagedBy] != mirrorControllerName {
			return nil
		}
		return requestForService(slice)
	})
	return nil
}

func (e *endpointMirror) Reconcile(ctx context.Context, req Request) (Result, error) {
	source, err := e.source(req)
	if err != nil {
		return Result{}, err
	}
	existing, err := e.slices.EndpointSlices(req.Namespace).List(labels.SelectorFromSet(labels.Set{
		discoveryv1.LabelServiceName: req.Name, discoveryv1.LabelManagedBy: mirrorControllerName,
	}))
	if err != nil {
		return Result{}, err
	}
	want := map[string]*discoveryv1.EndpointSlice{}
	if source != nil {
		want = mirrorOf(source)
	}
	for _, slice := range existing {
		if err := e.settle(ctx, slice, want[slice.Name]); err != nil {
			return Result{}, err
		}
		delete(want, slice.Name)
	}
	for _, slice := range want {
		_, err := e.client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
		if err := ignoreExistsOrTerminating(err); err != nil {
			return Result{}, err
		}
	}
	return Result{}, nil
}

// source returns the Endpoints to mirror, or nil: there are none, they are not for a Service without a selector, or they ask
// to be left out.
func (e *endpointMirror) source(req Request) (*corev1.Endpoints, error) {
	service, err := e.services.Services(req.Namespace).Get(req.Name)
	if apierrors.IsNotFound(err) || err == nil && service.Spec.Selector != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	source, err := e.endpoints.Endpoints(req.Namespace).Get(req.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, isLock := source.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]
	if isLock || source.Labels[discoveryv1.LabelSkipMirror] == "true" {
		return nil, nil
	}
	return source, nil
}

// settle updates an existing slice, or deletes it when it is not wanted. Port names, endpoints and the address type come
// from the wanted one; the address type cannot change, because it is part of the name.
func (e *endpointMirror) settle(ctx context.Context, slice, want *discoveryv1.EndpointSlice) error {
	client := e.client.DiscoveryV1().EndpointSlices(slice.Namespace)
	if want == nil {
		return ignoreNotFound(client.Delete(ctx, slice.Name, exactly(slice)))
	}
	if equality.Semantic.DeepEqual(slice.Endpoints, want.Endpoints) && equality.Semantic.DeepEqual(slice.Ports, want.Ports) &&
		equality.Semantic.DeepEqual(slice.Labels, want.Labels) && equality.Semantic.DeepEqual(slice.OwnerReferences, want.OwnerReferences) {
		return nil
	}
	update := slice.DeepCopy()
	update.Endpoints, update.Ports, update.Labels, update.OwnerReferences = want.Endpoints, want.Ports, want.Labels, want.OwnerReferences
	_, err := client.Update(ctx, update, metav1.UpdateOptions{})
	return err
}

// mirrorOf are the slices that say the same as the Endpoints, by name.
func mirrorOf(source *corev1.Endpoints) map[string]*discoveryv1.EndpointSlice {
	out := map[string]*discoveryv1.EndpointSlice{}
	for _, subset := range source.Subsets {
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			found := append(mirrored(subset.Addresses, family, true), mirrored(subset.NotReadyAddresses, family, false)...)
			if len(found) == 0 {
				continue
			}
			slice := newMirror(source, subset.Ports, family)
			if other := out[slice.Name]; other != nil { // two subsets with the same ports
				found = append(other.Endpoints, found...)
			}
			slice.Endpoints = found[:min(len(found), maxMirrored)]
			out[slice.Name] = slice
		}
	}
	return out
}

func newMirror(source *corev1.Endpoints, ports []corev1.EndpointPort, family discoveryv1.AddressType) *discoveryv1.EndpointSlice {
	set := maps.Clone(source.Labels)
	if set == nil {
		set = map[string]string{}
	}
	set[discoveryv1.LabelServiceName], set[discoveryv1.LabelManagedBy] = source.Name, mirrorControllerName
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: source.Namespace, Name: mirrorName(source.Name, ports, family), Labels: set,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(source, endpointsKind)},
		},
		AddressType: family,
	}
	for _, port := range ports {
		protocol := port.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Port: ptr.To(port.Port), Protocol: &protocol, AppProtocol: port.AppProtocol,
		})
	}
	return slice
}

// mirrorName is the same for the same ports, so that a slice that the cache does not show yet cannot be made twice. Names
// of Services are at most 63 long, so this one is valid.
func mirrorName(service string, ports []corev1.EndpointPort, family discoveryv1.AddressType) string {
	hash := fnv.New32a()
	for _, port := range slices.SortedFunc(slices.Values(ports), func(a, b corev1.EndpointPort) int { return strings.Compare(a.Name, b.Name) }) {
		fmt.Fprintf(hash, "%s/%d/%s/%s;", port.Name, port.Port, port.Protocol, ptr.Deref(port.AppProtocol, ""))
	}
	return fmt.Sprintf("%s-%s-%08x", service, strings.ToLower(string(family)), hash.Sum32())
}

func mirrored(addresses []corev1.EndpointAddress, family discoveryv1.AddressType, ready bool) (out []discoveryv1.Endpoint) {
	for _, address := range addresses {
		ip, err := netip.ParseAddr(address.IP)
		if err != nil || ip.Is6() != (family == discoveryv1.AddressTypeIPv6) {
			continue
		}
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{address.IP}, TargetRef: address.TargetRef, NodeName: address.NodeName,
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(ready), Serving: ptr.To(ready), Terminating: ptr.To(false)},
		}
		if address.Hostname != "" {
			endpoint.Hostname = ptr.To(address.Hostname)
		}
		out = append(out, endpoint)
	}
	return out
}
