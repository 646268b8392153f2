package registry

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	clusterIPsPath     = specPath.Child("clusterIPs")
	ipFamiliesPath     = specPath.Child("ipFamilies")
	ipFamilyPolicyPath = specPath.Child("ipFamilyPolicy")
)

// validateClusterIPs: addresses, families and policy are well-formed and agree with each other and with the cluster.
func (a serviceAllocator) validateClusterIPs(spec *corev1.ServiceSpec) field.ErrorList {
	if !needsClusterIP(spec) {
		return nil
	}
	var faults field.ErrorList
	switch {
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		faults = append(faults, field.Invalid(clusterIPsPath, spec.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		faults = append(faults, field.Required(clusterIPsPath, ""))
	case len(spec.ClusterIPs) > 0 && spec.ClusterIPs[0] != spec.ClusterIP:
		faults = append(faults, field.Invalid(clusterIPsPath, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	seen := names{}
	for i, f := range spec.IPFamilies {
		faults = append(faults, supported(ipFamiliesPath.Index(i), f, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
		faults = append(faults, seen.add(ipFamiliesPath.Index(i), string(f))...)
	}
	if p := spec.IPFamilyPolicy; p != nil {
		faults = append(faults, supported(ipFamilyPolicyPath, *p,
			corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)...)
	}
	malformed := clusterIPList(spec)
	faults = append(faults, malformed...)
	if len(malformed) == 0 {
		faults = append(faults, addressesOfFamilies(spec)...)
	}
	if len(faults) > 0 {
		return faults
	}
	return a.fitsCluster(spec)
}

// clusterIPList: "None" alone, or one or two addresses.
func clusterIPList(spec *corev1.ServiceSpec) field.ErrorList {
	var faults field.ErrorList
	for i, ip := range spec.ClusterIPs {
		switch {
		case i > 0 || ip != corev1.ClusterIPNone:
			faults = append(faults, validation.IsValidIP(clusterIPsPath.Index(i), ip)...)
		case len(spec.ClusterIPs) > 1:
			faults = append(faults, field.Invalid(clusterIPsPath, spec.ClusterIPs, "'None' must be the first and only value"))
		}
	}
	if len(spec.ClusterIPs) > 2 {
		faults = append(faults, field.Invalid(clusterIPsPath, spec.ClusterIPs, "may only hold up to 2 values"))
	}
	return faults
}

func addressesOfFamilies(spec *corev1.ServiceSpec) field.ErrorList {
	if spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	var faults field.ErrorList
	families := map[corev1.IPFamily]bool{}
	for i, text := range spec.ClusterIPs {
		family := familyOf(netip.MustParseAddr(text))
		families[family] = true
		if i < len(spec.IPFamilies) && spec.IPFamilies[i] != family {
			faults = append(faults, field.Invalid(clusterIPsPath.Index(i), text, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", spec.IPFamilies[i], i)))
		}
	}
	if len(families) < len(spec.ClusterIPs) {
		return field.ErrorList{field.Invalid(clusterIPsPath, spec.ClusterIPs, "may specify no more than one IP for each IP family")}
	}
	return faults
}

// fitsCluster: the policy goes with the families, and the cluster has them.
func (a serviceAllocator) fitsCluster(spec *corev1.ServiceSpec) field.ErrorList {
	var faults field.ErrorList
	policy, ranges := spec.IPFamilyPolicy, a.ranges()
	is := func(p corev1.IPFamilyPolicy) bool { return policy != nil && *policy == p }
	const dual = "must be 'RequireDualStack' or 'PreferDualStack' when multiple %s are specified"
	if is(corev1.IPFamilyPolicySingleStack) && len(spec.ClusterIPs) == 2 {
		faults = append(faults, field.Invalid(ipFamilyPolicyPath, policy, fmt.Sprintf(dual, "cluster IPs")))
	}
	if is(corev1.IPFamilyPolicySingleStack) && len(spec.IPFamilies) == 2 {
		faults = append(faults, field.Invalid(ipFamilyPolicyPath, policy, fmt.Sprintf(dual, "IP families")))
	}
	for i, text := range spec.ClusterIPs {
		if ip, err := netip.ParseAddr(text); err == nil && i >= len(spec.IPFamilies) && !ranges[familyOf(ip)].IsValid() {
			faults = append(faults, field.Invalid(clusterIPsPath.Index(i), spec.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", familyOf(ip))))
		}
	}
	if len(faults) > 0 || headlessOpen(spec) {
		return faults
	}
	if is(corev1.IPFamilyPolicyRequireDualStack) && len(ranges) < 2 {
		faults = append(faults, field.Invalid(ipFamilyPolicyPath, policy, "this cluster is not configured for dual-stack services"))
	}
	for i, f := range spec.IPFamilies {
		if !ranges[f].IsValid() {
			faults = append(faults, field.Invalid(ipFamiliesPath.Index(i), f, "not configured on this cluster"))
		}
	}
	return faults
}

// clusterIPsUpdate: the first address and family are for life, unless the Service was or becomes an ExternalName; the
// second ones may come and go, the latter only if the user asks for a single stack.
func clusterIPsUpdate(spec, old *corev1.ServiceSpec) field.ErrorList {
	if !needsClusterIP(spec) || !needsClusterIP(old) {
		return nil
	}
	none := func(s *corev1.ServiceSpec) bool { return slices.Equal(s.ClusterIPs, []string{corev1.ClusterIPNone}) }
	if none(spec) && none(old) {
		return nil
	}
	faults := firstStays(clusterIPsPath, spec.ClusterIPs, old.ClusterIPs, "primary clusterIP can not be unset")
	single := spec.IPFamilyPolicy != nil && *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	if len(old.ClusterIPs) == 2 && len(spec.ClusterIPs) == 1 && !single {
		faults = append(faults, field.Invalid(ipFamilyPolicyPath, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP"))
	}
	if none(spec) != none(old) {
		return faults
	}
	faults = append(faults, firstStays(ipFamiliesPath, spec.IPFamilies, old.IPFamilies, "primary ipFamily can not be unset")...)
	if len(old.IPFamilies) == 2 && len(spec.IPFamilies) == 1 && !single {
		faults = append(faults, field.Invalid(ipFamilyPolicyPath, spec.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family"))
	}
	return faults
}

// firstStays: what both lists have at one place is the same, and the first one is there.
func firstStays[T comparable](path *field.Path, list, old []T, unset string) field.ErrorList {
	if len(list) == 0 && len(old) > 0 {
		return field.ErrorList{field.Invalid(path.Index(0), list, unset)}
	}
	var faults field.ErrorList
	for i := range min(len(list), len(old)) {
		if list[i] != old[i] {
			faults = append(faults, field.Invalid(path.Index(i), list, "may not change once set"))
		}
	}
	return faults
}
