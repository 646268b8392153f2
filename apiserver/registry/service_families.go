package registry

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A Service has addresses of one IP family or of two. ipFamilyPolicy says which the user wants, ipFamilies which
// they are and in what order, clusterIPs has an address of each (KEP 563). What the user leaves out is inferred here;
// what does not go together is refused in service_validation.go.

// ranges are where cluster IPs come from, by family.
func (a serviceAllocator) ranges() map[corev1.IPFamily]netip.Prefix {
	out := map[corev1.IPFamily]netip.Prefix{familyOf(a.ServiceCIDR.Addr()): a.ServiceCIDR}
	if a.SecondServiceCIDR.IsValid() {
		out[familyOf(a.SecondServiceCIDR.Addr())] = a.SecondServiceCIDR
	}
	return out
}

// family is the one that Services have unless they ask for another.
func (a serviceAllocator) family() corev1.IPFamily { return familyOf(a.ServiceCIDR.Addr()) }

func familyOf(addr netip.Addr) corev1.IPFamily {
	if addr.Is4() || addr.Is4In6() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func otherFamily(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// headlessOpen: without a cluster IP and without a selector, whoever writes the endpoints decides on families.
func headlessOpen(spec *corev1.ServiceSpec) bool {
	return spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
}

// settleFamilies fills in ipFamilyPolicy and ipFamilies. old is the Service as it was, or empty.
func (a serviceAllocator) settleFamilies(spec, old *corev1.ServiceSpec) {
	if !needsClusterIP(spec) || a.staysPreferred(spec, old) {
		return
	}
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = inferPolicy(spec, old)
	}
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		keepFirst(&spec.ClusterIPs, old.ClusterIPs)
		keepFirst(&spec.IPFamilies, old.IPFamilies)
	}
	if !a.inferFamilies(spec) {
		return
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{a.family()}
	}
	both := headlessOpen(spec) || len(a.ranges()) == 2
	if both && len(spec.IPFamilies) == 1 && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		spec.IPFamilies = append(spec.IPFamilies, otherFamily(spec.IPFamilies[0]))
	}
}

// staysPreferred: a Service that prefers two families is left as it is when the cluster has got or lost one, until
// somebody changes its families.
func (a serviceAllocator) staysPreferred(spec, old *corev1.ServiceSpec) bool {
	prefers := func(s *corev1.ServiceSpec) bool {
		return s.IPFamilyPolicy != nil && *s.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
	}
	return needsClusterIP(old) && prefers(spec) && prefers(old) && len(old.IPFamilies) > 0 &&
		slices.Equal(spec.ClusterIPs, old.ClusterIPs) && slices.Equal(spec.IPFamilies, old.IPFamilies)
}

func inferPolicy(spec, old *corev1.ServiceSpec) *corev1.IPFamilyPolicy {
	switch {
	case old.IPFamilyPolicy != nil:
		return new(*old.IPFamilyPolicy)
	case headlessOpen(spec):
		return new(corev1.IPFamilyPolicyRequireDualStack)
	}
	return new(corev1.IPFamilyPolicySingleStack)
}

// keepFirst drops the second one, if the user has left both as they were and asks for one.
func keepFirst[T comparable](list *[]T, old []T) {
	if len(*list) > 1 && slices.Equal(*list, old) {
		*list = (*list)[:1]
	}
}

// inferFamilies adds the families of addresses that have none. It reports false for one that the cluster has not:
// nothing more can be said then.
func (a serviceAllocator) inferFamilies(spec *corev1.ServiceSpec) bool {
	for i, text := range spec.ClusterIPs {
		ip, err := netip.ParseAddr(text)
		if err != nil || i < len(spec.IPFamilies) {
			continue // "None", or a fault
		}
		family := familyOf(ip)
		if _, configured := a.ranges()[family]; !configured {
			return false
		}
		if !slices.Contains(spec.IPFamilies, family) { // two addresses of one are refused
			spec.IPFamilies = append(spec.IPFamilies, family)
		}
	}
	return true
}
