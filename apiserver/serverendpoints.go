package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// writeEndpoints makes Endpoints and EndpointSlices of the Service "kubernetes" name the servers that have a Lease. The
// Leases are read after the object that is replaced, and it is only replaced if it has not changed since: whoever writes
// last has seen everybody who wrote before him, and a server writes after it has taken its Lease. So the list is exact
// however many servers start at a time.
func (s *Server) writeEndpoints(ctx context.Context) error {
	endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Name: kubernetesName, Namespace: metav1.NamespaceDefault, Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
	}}
	if err := s.rewrite(ctx, endpoints, s.fitEndpoints); err != nil {
		return fmt.Errorf("endpoints of the Service kubernetes: %w", err)
	}
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		if err := s.writeSlices(ctx, family); err != nil {
			return fmt.Errorf("endpoint slices of the Service kubernetes: %w", err)
		}
	}
	return nil
}

// rewrite brings the object with obj's name up to date by fit, or creates it. fit is called again when somebody was faster.
func (s *Server) rewrite(ctx context.Context, obj runtime.Object, fit func(context.Context, runtime.Object) error) error {
	t, err := s.targetOf(obj, accessor(obj).GetNamespace())
	if err != nil {
		return err
	}
	options := writeOptions{manager: bootstrapManager}
	_, err = s.change(ctx, t, change{options: options, allowMissing: true, next: func(ctx context.Context, live runtime.Object) (runtime.Object, error) {
		next := live.DeepCopyObject()
		if accessor(live).GetName() == "" {
			next = obj.DeepCopyObject()
		}
		if err := fit(ctx, next); err != nil {
			return nil, err
		}
		if t.resource.Default(next); equality.Semantic.DeepEqual(live, next) {
			return live, nil
		}
		return s.track(t, live, next, options.manager)
	}})
	return err
}

// servers are the places of all servers that have a Lease, in order, and by port: a list of endpoints has one.
func (s *Server) servers(ctx context.Context, wanted func(netip.Addr) bool) ([][]netip.AddrPort, error) {
	leases, err := s.serverLeases(ctx)
	if err != nil {
		return nil, err
	}
	var places []netip.AddrPort
	for _, lease := range leases {
		if place, err := netip.ParseAddrPort(*lease.Spec.HolderIdentity); err == nil && reachable(place.Addr()) && wanted(place.Addr()) {
			places = append(places, place)
		}
	}
	slices.SortFunc(places, func(a, b netip.AddrPort) int { return cmp.Or(cmp.Compare(a.Port(), b.Port()), a.Compare(b)) })
	var groups [][]netip.AddrPort
	for _, place := range slices.Compact(places) {
		if last := len(groups) - 1; last >= 0 && groups[last][0].Port() == place.Port() {
			groups[last] = append(groups[last], place)
		} else {
			groups = append(groups, []netip.AddrPort{place})
		}
	}
	return groups, nil
}

func (s *Server) fitEndpoints(ctx context.Context, obj runtime.Object) error {
	groups, err := s.servers(ctx, func(netip.Addr) bool { return true })
	if err != nil {
		return err
	}
	var subsets []corev1.EndpointSubset
	for _, group := range groups {
		subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "https", Port: int32(group[0].Port()), Protocol: corev1.ProtocolTCP}}}
		for _, place := range group {
			subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: place.Addr().String()})
		}
		subsets = append(subsets, subset)
	}
	obj.(*corev1.Endpoints).Subsets = subsets
	return nil
}

// writeSlices keeps a slice for each port, the lowest first: servers with other ports than the first are rare. Without any
// server of the family there is none, unless this server is of it: its slice then is empty.
func (s *Server) writeSlices(ctx context.Context, family discoveryv1.AddressType) error {
	wanted := func(a netip.Addr) bool { return a.Is4() == (family == discoveryv1.AddressTypeIPv4) }
	groups, err := s.servers(ctx, wanted)
	if err != nil {
		return err
	}
	count := len(groups)
	if count == 0 && reachable(s.config.AdvertiseAddress) && wanted(s.config.AdvertiseAddress) {
		count = 1
	}
	for i := range count {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: sliceName(family, i), Namespace: metav1.NamespaceDefault,
				Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesName},
			},
			AddressType: family,
		}
		err := s.rewrite(ctx, slice, func(ctx context.Context, obj runtime.Object) error {
			groups, err := s.servers(ctx, wanted)
			if err == nil {
				s.fitSlice(obj.(*discoveryv1.EndpointSlice), groups, i)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.removeSlices(ctx, family, count, wanted)
}

func sliceName(family discoveryv1.AddressType, index int) string {
	name := kubernetesName
	if family == discoveryv1.AddressTypeIPv6 {
		name += "-ipv6"
	}
	if index > 0 {
		name += fmt.Sprintf("-%d", index+1)
	}
	return name
}

// fitSlice has a slice name the servers of the group with its index; none if there are not as many any more.
func (s *Server) fitSlice(slice *discoveryv1.EndpointSlice, groups [][]netip.AddrPort, index int) {
	var group []netip.AddrPort
	port := int32(s.config.AdvertisePort)
	if index < len(groups) {
		group, port = groups[index], int32(groups[index][0].Port())
	}
	name, protocol, ready := "https", corev1.ProtocolTCP, true
	slice.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	slice.Endpoints = []discoveryv1.Endpoint{}
	for _, place := range group {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{place.Addr().String()},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
}

var errSliceNeeded = errors.New("the slice has endpoints by now")

// removeSlices deletes those of a family from an index on, unless a server has come meanwhile that is in it.
func (s *Server) removeSlices(ctx context.Context, family discoveryv1.AddressType, from int, wanted func(netip.Addr) bool) error {
	for i := from; ; i++ {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: sliceName(family, i)}}
		t, err := s.targetOf(slice, metav1.NamespaceDefault)
		if err != nil {
			return err
		}
		_, err = s.delete(ctx, t, &metav1.DeleteOptions{}, func(runtime.Object) error {
			if groups, err := s.servers(ctx, wanted); err != nil || i < len(groups) {
				return cmp.Or(err, errSliceNeeded)
			}
			return nil
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil && !errors.Is(err, errSliceNeeded):
			return err
		}
	}
}
