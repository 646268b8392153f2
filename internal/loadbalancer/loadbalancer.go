package loadbalancer

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
)

const (
	// Class is the spec.loadBalancerClass of Services that ask for Kontiki's addresses by name.
	Class = "kontiki.io/load-balancer"
	// AddressesAnnotation of a Service names the addresses that it wants, with commas between, at most one of each IP family.
	AddressesAnnotation = "kontiki.io/load-balancer-ips"
	// Assigned is the condition of a Service that says whether it has its addresses.
	Assigned = "kontiki.io/AddressAssigned"
	// ManagedBy is the label networking.k8s.io's managed-by of the IPAddresses that hold addresses of the pool.
	ManagedBy = "load-balancer-controller.kontiki.io"
	// UIDLabel of such an IPAddress is the uid of its Service: one that is made anew under the old name is another.
	UIDLabel = "kontiki.io/load-balancer-service-uid"
)

// Wanted says whether a Service is to have addresses of the pool.
func Wanted(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer && ptr.Deref(s.Spec.LoadBalancerClass, Class) == Class
}

// Announced are the addresses of a Service that nodes answer for.
func Announced(s *corev1.Service) (addresses []netip.Addr) {
	if !Wanted(s) || !meta.IsStatusConditionTrue(s.Status.Conditions, Assigned) {
		return nil
	}
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if address, err := netip.ParseAddr(ingress.IP); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// Requested are the addresses that the user of a Service wants; the error names one that is none.
func Requested(s *corev1.Service) (addresses []netip.Addr, err error) {
	text := s.Annotations[AddressesAnnotation]
	if text == "" {
		text = s.Spec.LoadBalancerIP
	}
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		address, err := netip.ParseAddr(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address.Unmap())
	}
	return addresses, nil
}

// Pool is the ranges that addresses are given from.
type Pool []netip.Prefix

// Contains says whether an address is of the pool.
func (p Pool) Contains(address netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// HasFamily says whether the pool has addresses of an IP family.
func (p Pool) HasFamily(isIPv6 bool) bool {
	for _, prefix := range p {
		if prefix.Addr().Is6() == isIPv6 {
			return true
		}
	}
	return false
}

// All yields the addresses of a family in their order, without the IPv4 addresses that end in 0 or 255: some networks take
// them for those of networks and broadcasts.
func (p Pool) All(isIPv6 bool) func(yield func(netip.Addr) bool) {
	return func(yield func(netip.Addr) bool) {
		for _, prefix := range p {
			if prefix.Addr().Is6() != isIPv6 {
				continue
			}
			for a := prefix.Masked().Addr(); a.IsValid() && prefix.Contains(a); a = a.Next() {
				if !isEdge(a) && !yield(a) {
					return
				}
			}
		}
	}
}

func isEdge(a netip.Addr) bool {
	last := a.AsSlice()[len(a.AsSlice())-1]
	return last == 0 || a.Is4() && last == 255
}
