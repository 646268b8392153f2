package registry

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// quotaResource: quotas know every standard resource but plain storage, which is only asked for.
func quotaResource(name corev1.ResourceName) bool {
	return standardResources[name] && name != corev1.ResourceStorage || isHugePages(name) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

func quotaAmounts(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var faults field.ErrorList
	for name, amount := range inOrder(list) {
		at := path.Key(string(name))
		faults = append(faults, resourceName(at, name)...)
		if !strings.Contains(string(name), "/") && !quotaResource(name) {
			faults = append(faults, field.Invalid(at, name, "must be a standard resource for quota"))
		}
		faults = append(faults, quantityOf(at, name, amount)...)
	}
	return faults
}

func validateResourceQuota(q *corev1.ResourceQuota) field.ErrorList {
	faults := quotaAmounts(specPath.Child("hard"), q.Spec.Hard)
	faults = append(faults, quotaScopes(specPath.Child("scopes"), &q.Spec)...)
	return append(faults, scopeSelector(specPath.Child("scopeSelector", "matchExpressions"), &q.Spec)...)
}

func validateResourceQuotaUpdate(q, old *corev1.ResourceQuota) field.ErrorList {
	set := func(scopes []corev1.ResourceQuotaScope) []corev1.ResourceQuotaScope {
		return slices.Compact(slices.Sorted(slices.Values(scopes)))
	}
	if !slices.Equal(set(q.Spec.Scopes), set(old.Spec.Scopes)) {
		return field.ErrorList{field.Invalid(specPath.Child("scopes"), q.Spec.Scopes, "field is immutable")}
	}
	return nil
}

func validateResourceQuotaStatus(q *corev1.ResourceQuota) field.ErrorList {
	status := field.NewPath("status")
	return append(quotaAmounts(status.Child("hard"), q.Status.Hard), quotaAmounts(status.Child("used"), q.Status.Used)...)
}

// podCompute is what scopes of pods can be counted in, beside their number; claimAmounts what those of claims can.
var (
	podCompute = []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	}
	claimAmounts = []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage}
)

// scopeResources are the scopes, each with what a quota of it may limit.
var scopeResources = map[corev1.ResourceQuotaScope][]corev1.ResourceName{
	corev1.ResourceQuotaScopeTerminating:               podCompute,
	corev1.ResourceQuotaScopeNotTerminating:            podCompute,
	corev1.ResourceQuotaScopeNotBestEffort:             podCompute,
	corev1.ResourceQuotaScopePriorityClass:             podCompute,
	corev1.ResourceQuotaScopeCrossNamespacePodAffinity: podCompute,
	corev1.ResourceQuotaScopeBestEffort:                {corev1.ResourcePods},
	corev1.ResourceQuotaScopeVolumeAttributesClass:     claimAmounts,
}

// quotaScopes. Kubernetes blames the whole list, once for each fault.
func quotaScopes(path *field.Path, s *corev1.ResourceQuotaSpec) field.ErrorList {
	var faults field.ErrorList
	for _, scope := range s.Scopes {
		if _, known := scopeResources[scope]; !known {
			faults = append(faults, field.Invalid(path, s.Scopes, "unsupported scope"))
		}
		for range outsideScope(s.Hard, scope) {
			faults = append(faults, field.Invalid(path, s.Scopes, "unsupported scope applied to resource"))
		}
	}
	return append(faults, scopeConflicts(path, s.Scopes, s.Scopes)...)
}

// outsideScope are the resources of a quota that do not go with a scope.
func outsideScope(hard corev1.ResourceList, scope corev1.ResourceQuotaScope) []corev1.ResourceName {
	allowed, known := scopeResources[scope]
	if !known {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(hard)), func(name corev1.ResourceName) bool {
		return !quotaResource(name) || slices.Contains(allowed, name)
	})
}

func scopeConflicts(path *field.Path, value any, scopes []corev1.ResourceQuotaScope) field.ErrorList {
	var faults field.ErrorList
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			faults = append(faults, field.Invalid(path, value, "conflicting scopes"))
		}
	}
	return faults
}

func scopeSelector(path *field.Path, s *corev1.ResourceQuotaSpec) field.ErrorList {
	if s.ScopeSelector == nil {
		return nil
	}
	var faults field.ErrorList
	var scopes []corev1.ResourceQuotaScope
	for _, r := range s.ScopeSelector.MatchExpressions {
		scopes = append(scopes, r.ScopeName)
		if _, known := scopeResources[r.ScopeName]; !known {
			faults = append(faults, field.Invalid(path.Child("scopeName"), r.ScopeName, "unsupported scope"))
		}
		for range outsideScope(s.Hard, r.ScopeName) {
			faults = append(faults, field.Invalid(path, shown(s.ScopeSelector), "unsupported scope applied to resource"))
		}
		faults = append(faults, scopeRequirement(path, r)...)
	}
	return append(faults, scopeConflicts(path, s.Scopes, scopes)...)
}

// scopeRequirement: scopes that a pod is in or not have no values.
func scopeRequirement(path *field.Path, r corev1.ScopedResourceSelectorRequirement) field.ErrorList {
	var faults field.ErrorList
	switch r.ScopeName {
	case corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass:
	default:
		if _, known := scopeResources[r.ScopeName]; known && r.Operator != corev1.ScopeSelectorOpExists {
			faults = append(faults, field.Invalid(path.Child("operator"), r.Operator,
				"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
		}
	}
	switch values := path.Child("values"); r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(r.Values) == 0 {
			faults = append(faults, field.Required(values, "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(r.Values) != 0 {
			faults = append(faults, field.Invalid(values, r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
		}
	default:
		faults = append(faults, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	return faults
}
