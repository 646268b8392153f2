package registry

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateNode(n *corev1.Node) field.ErrorList {
	faults := validateTaints(field.NewPath("metadata", "taints"), n.Spec.Taints) // the path that Kubernetes gives
	status := field.NewPath("status")
	faults = append(faults, nodeAmounts(status.Child("capacity"), n.Status.Capacity)...)
	faults = append(faults, nodeAmounts(status.Child("allocatable"), n.Status.Allocatable)...)
	faults = append(faults, declaredFeatures(status.Child("declaredFeatures"), n.Status.DeclaredFeatures)...)
	return append(faults, nodeCIDRs(specPath.Child("podCIDRs"), n.Spec.PodCIDRs)...)
}

func nodeAmounts(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var faults field.ErrorList
	for name, amount := range inOrder(list) {
		faults = append(faults, quantityOf(path.Child(string(name)), name, amount)...)
	}
	return faults
}

// nodeCIDRs: at most one of each family.
func nodeCIDRs(path *field.Path, list []string) field.ErrorList {
	var faults field.ErrorList
	families := map[bool]bool{}
	for i, text := range list {
		cidr, err := netip.ParsePrefix(text)
		if err != nil {
			faults = append(faults, field.Invalid(path.Index(i), text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))
			continue
		}
		families[cidr.Addr().Is4()] = true
	}
	if len(faults) == 0 && len(families) < len(list) {
		faults = append(faults, field.Invalid(path, list, "may specify no more than one CIDR for each IP family"))
	}
	return faults
}

var featureName = regexp.MustCompile(`^[A-Z][[:alnum:]]*(/[[:alpha:]][[:alnum:]]*)*$`)

// declaredFeatures are what a node agent says it can do, sorted.
func declaredFeatures(path *field.Path, list []string) field.ErrorList {
	var faults field.ErrorList
	for i, name := range list {
		at := path.Index(i)
		switch {
		case len(name) > validation.DNS1123SubdomainMaxLength:
			faults = append(faults, field.Invalid(at, name, fmt.Sprintf("invalid feature name %q: must be no more than %d characters", name, validation.DNS1123SubdomainMaxLength)))
		case !featureName.MatchString(name):
			faults = append(faults, field.Invalid(at, name, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", name)))
		}
		switch {
		case i == 0:
		case name == list[i-1]:
			faults = append(faults, field.Duplicate(at, name))
		case name < list[i-1]:
			faults = append(faults, field.Invalid(at, name, "list must be sorted alphabetically"))
		}
	}
	return faults
}

func validateTaints(path *field.Path, taints []corev1.Taint) field.ErrorList {
	var faults field.ErrorList
	seen := map[corev1.Taint]bool{}
	for i, t := range taints {
		at := path.Index(i)
		faults = append(faults, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		if m := validation.IsValidLabelValue(t.Value); len(m) > 0 {
			faults = append(faults, field.Invalid(at.Child("value"), t.Value, strings.Join(m, ";")))
		}
		faults = append(faults, taintEffect(at.Child("effect"), t.Effect)...)
		key := corev1.Taint{Key: t.Key, Effect: t.Effect}
		if seen[key] {
			twice := field.Duplicate(at, shown(t))
			twice.Detail = "taints must be unique by key and effect pair"
			faults = append(faults, twice)
		}
		seen[key] = true
	}
	return faults
}

// validateNodeUpdate: what identifies the node and its pods stays, once it is known.
func validateNodeUpdate(n, old *corev1.Node) field.ErrorList {
	var faults field.ErrorList
	seen := map[corev1.NodeAddress]bool{}
	for i, a := range n.Status.Addresses {
		if seen[a] {
			faults = append(faults, field.Duplicate(field.NewPath("status", "addresses").Index(i), shown(a)))
		}
		seen[a] = true
	}
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(n.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		faults = append(faults, field.Forbidden(specPath.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	switch was := old.Spec.ProviderID; {
	case was == "" || n.Spec.ProviderID == was:
	case n.Spec.ProviderID == "":
		faults = append(faults, field.Invalid(specPath.Child("providerID"), nil, "field cannot be cleared once set"))
	default:
		faults = append(faults, field.Invalid(specPath.Child("providerID"), nil, "field cannot be modified once set"))
	}
	if n.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		faults = append(faults, field.Forbidden(specPath.Child("externalID"), "may not be updated"))
	}
	return faults
}
