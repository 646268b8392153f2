package registry

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateAffinityRules judges where a pod wants to run.
func validateAffinityRules(path *field.Path, a *corev1.Affinity) field.ErrorList {
	if a == nil {
		return nil
	}
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	var faults field.ErrorList
	weight := func(path *field.Path, n int32) {
		if n < 1 || n > 100 {
			faults = append(faults, field.Invalid(path.Child("weight"), n, "must be in the range 1-100"))
		}
	}
	if n := a.NodeAffinity; n != nil {
		at := path.Child("nodeAffinity")
		if s := n.RequiredDuringSchedulingIgnoredDuringExecution; s != nil {
			faults = append(faults, nodeSelector(at.Child(required), s)...)
		}
		for i, p := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			term := at.Child(preferred).Index(i)
			weight(term, p.Weight)
			faults = append(faults, nodeSelectorTerm(term.Child("preference"), p.Preference, false)...)
		}
	}
	terms := func(at *field.Path, list []corev1.PodAffinityTerm, weighted []corev1.WeightedPodAffinityTerm) {
		for i, t := range list {
			faults = append(faults, podAffinityTerm(at.Child(required).Index(i), t)...)
		}
		for i, w := range weighted {
			term := at.Child(preferred).Index(i)
			weight(term, w.Weight)
			faults = append(faults, podAffinityTerm(term.Child("podAffinityTerm"), w.PodAffinityTerm)...)
		}
	}
	if p := a.PodAffinity; p != nil {
		terms(path.Child("podAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		terms(path.Child("podAntiAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return faults
}

func nodeSelector(path *field.Path, s *corev1.NodeSelector) field.ErrorList {
	at := path.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(at, "must have at least one node selector term")}
	}
	var faults field.ErrorList
	for i, t := range s.NodeSelectorTerms {
		faults = append(faults, nodeSelectorTerm(at.Index(i), t, true)...)
	}
	return faults
}

// nodeSelectorTerm: where a term is no more than a preference (not strict), values that no label can have are let
// through, as in Kubernetes.
func nodeSelectorTerm(path *field.Path, t corev1.NodeSelectorTerm, strict bool) field.ErrorList {
	var faults field.ErrorList
	for i, r := range t.MatchExpressions {
		faults = append(faults, nodeRequirement(path.Child("matchExpressions").Index(i), r, strict)...)
	}
	for i, r := range t.MatchFields {
		at := path.Child("matchFields").Index(i)
		values := at.Child("values")
		if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
			faults = append(faults, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		} else if len(r.Values) != 1 {
			faults = append(faults, field.Required(values, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
		if r.Key != metav1.ObjectNameField {
			faults = append(faults, field.Invalid(at.Child("key"), r.Key, "not a valid field selector key"))
			continue
		}
		for j, name := range r.Values {
			faults = append(faults, invalid(values.Index(j), name, apivalidation.NameIsDNSSubdomain(name, false))...)
		}
	}
	return faults
}

func nodeRequirement(path *field.Path, r corev1.NodeSelectorRequirement, strict bool) field.ErrorList {
	var faults field.ErrorList
	values := path.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			faults = append(faults, field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			faults = append(faults, field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			faults = append(faults, field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
		}
	default:
		faults = append(faults, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	faults = append(faults, metavalidation.ValidateLabelName(r.Key, path.Child("key"))...)
	for i, value := range r.Values {
		if strict {
			faults = append(faults, invalid(values.Index(i), value, validation.IsValidLabelValue(value))...)
		}
	}
	return faults
}

func podAffinityTerm(path *field.Path, t corev1.PodAffinityTerm) field.ErrorList {
	options := metavalidation.LabelSelectorValidationOptions{}
	faults := metavalidation.ValidateLabelSelector(t.LabelSelector, options, path.Child("labelSelector"))
	faults = append(faults, metavalidation.ValidateLabelSelector(t.NamespaceSelector, options, path.Child("namespaceSelector"))...)
	for _, ns := range t.Namespaces { // Kubernetes gives no index
		faults = append(faults, invalid(path.Child("namespace"), ns, validation.IsDNS1123Label(ns))...)
	}
	faults = append(faults, labelKeys(path, t.MatchLabelKeys, t.MismatchLabelKeys, t.LabelSelector)...)
	if t.TopologyKey == "" {
		faults = append(faults, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(faults, metavalidation.ValidateLabelName(t.TopologyKey, path.Child("topologyKey"))...)
}

// labelKeys: the server adds requirements on these labels of the pod itself to the selector (pod_prepare.go), so
// that it must not have its own.
func labelKeys(path *field.Path, match, mismatch []string, selector *metav1.LabelSelector) field.ErrorList {
	var faults field.ErrorList
	for _, list := range []struct {
		child string
		keys  []string
	}{{"matchLabelKeys", match}, {"mismatchLabelKeys", mismatch}} {
		at := path.Child(list.child)
		if selector == nil && len(list.keys) > 0 {
			faults = append(faults, field.Forbidden(at, "must not be specified when labelSelector is not set"))
			continue
		}
		for i, key := range list.keys {
			faults = append(faults, metavalidation.ValidateLabelName(key, at.Index(i))...)
		}
	}
	if selector != nil {
		seen := map[string]bool{}
		for key := range selector.MatchLabels {
			seen[key] = true
		}
		for _, r := range selector.MatchExpressions {
			if slices.Contains(match, r.Key) && seen[r.Key] { // there before the server added its own
				last := len(match) - 1
				for match[last] != r.Key {
					last--
				}
				faults = append(faults, field.Invalid(path.Index(last), r.Key, "exists in both matchLabelKeys and labelSelector"))
			}
			seen[r.Key] = true
		}
	}
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			faults = append(faults, field.Invalid(path.Child("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys"))
		}
	}
	return faults
}

func validateSpread(path *field.Path, constraints []corev1.TopologySpreadConstraint) field.ErrorList {
	var faults field.ErrorList
	for i, c := range constraints {
		at := path.Index(i)
		if c.MaxSkew <= 0 {
			faults = append(faults, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		if c.TopologyKey == "" {
			faults = append(faults, field.Required(at.Child("topologyKey"), "can not be empty"))
		}
		faults = append(faults, supported(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		same := func(o corev1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}
		if slices.ContainsFunc(constraints[i+1:], same) {
			faults = append(faults, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable)))
		}
		if n := c.MinDomains; n != nil {
			if *n <= 0 {
				faults = append(faults, field.Invalid(at.Child("minDomains"), *n, "must be greater than zero"))
			}
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				faults = append(faults, field.Invalid(at.Child("minDomains"), *n, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, c.WhenUnsatisfiable)))
			}
		}
		for _, p := range []struct {
			child  string
			policy *corev1.NodeInclusionPolicy
		}{{"nodeAffinityPolicy", c.NodeAffinityPolicy}, {"nodeTaintsPolicy", c.NodeTaintsPolicy}} {
			if p.policy != nil {
				faults = append(faults, supported(at.Child(p.child), *p.policy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)...)
			}
		}
		faults = append(faults, labelKeys(at, c.MatchLabelKeys, nil, c.LabelSelector)...)
		faults = append(faults, metavalidation.ValidateLabelSelector(c.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, at.Child("labelSelector"))...)
	}
	return faults
}
