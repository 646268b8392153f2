package registry

import (
	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateAffinityRules judges where a pod wants to run.
func validateAffinityRules(path *field.Path, a *corev1.Affinity) field.ErrorList {
	if a == nil {
		return nil
	}
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	var faults field.ErrorList
	if n := a.NodeAffinity; n != nil {
		at := path.Child("nodeAffinity")
		if s := n.RequiredDuringSchedulingIgnoredDuringExecution; s != nil {
			faults = append(faults, nodeSelector(at.Child(required), s)...)
		}
		for i, p := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			term := at.Child(preferred).Index(i)
			if p.Weight < 1 || p.Weight > 100 {
				faults = append(faults, field.Invalid(term.Child("weight"), p.Weight, "must be in the range 1-100"))
			}
			faults = append(faults, nodeSelectorTerm(term.Child("preference"), p.Preference)...)
		}
	}
	terms := func(at *field.Path, list []corev1.PodAffinityTerm, weighted []corev1.WeightedPodAffinityTerm) {
		for i, t := range list {
			faults = append(faults, podAffinityTerm(at.Child(required).Index(i), t)...)
		}
		for i, w := range weighted {
			term := at.Child(preferred).Index(i)
			if w.Weight < 1 || w.Weight > 100 {
				faults = append(faults, field.Invalid(term.Child("weight"), w.Weight, "must be in the range 1-100"))
			}
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
		faults = append(faults, nodeSelectorTerm(at.Index(i), t)...)
	}
	return faults
}

func nodeSelectorTerm(path *field.Path, t corev1.NodeSelectorTerm) field.ErrorList {
	var faults field.ErrorList
	for i, r := range t.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		values := at.Child("values")
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
			faults = append(faults, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		}
		faults = append(faults, metavalidation.ValidateLabelName(r.Key, at.Child("key"))...)
	}
	for i, r := range t.MatchFields {
		at := path.Child("matchFields").Index(i)
		if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
			faults = append(faults, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		} else if len(r.Values) != 1 {
			faults = append(faults, field.Required(at.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
		if r.Key != "metadata.name" {
			faults = append(faults, field.Invalid(at.Child("key"), r.Key, "not a valid field selector key"))
		}
	}
	return faults
}

func podAffinityTerm(path *field.Path, t corev1.PodAffinityTerm) field.ErrorList {
	options := metavalidation.LabelSelectorValidationOptions{}
	faults := metavalidation.ValidateLabelSelector(t.LabelSelector, options, path.Child("labelSelector"))
	faults = append(faults, metavalidation.ValidateLabelSelector(t.NamespaceSelector, options, path.Child("namespaceSelector"))...)
	for _, ns := range t.Namespaces { // Kubernetes gives no index
		faults = append(faults, dnsLabel(path.Child("namespace"), ns)...)
	}
	if t.TopologyKey == "" {
		return append(faults, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(faults, metavalidation.ValidateLabelName(t.TopologyKey, path.Child("topologyKey"))...)
}
