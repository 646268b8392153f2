package registry

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateResources judges requests and limits. Not yet: page sizes of huge pages, resource claims.
func validateResources(path *field.Path, r *corev1.ResourceRequirements) field.ErrorList {
	var faults field.ErrorList
	limits, requests := path.Child("limits"), path.Child("requests")
	for name, quantity := range inOrder(r.Limits) {
		faults = append(faults, resourceAmount(limits.Key(string(name)), name, quantity)...)
	}
	for name, quantity := range inOrder(r.Requests) {
		faults = append(faults, resourceAmount(requests.Key(string(name)), name, quantity)...)
		limit, limited := r.Limits[name]
		switch {
		case !limited && !overcommittable(name):
			faults = append(faults, field.Required(limits, "Limit must be set for non overcommitable resources"))
		case limited && !overcommittable(name) && quantity.Cmp(limit) != 0:
			faults = append(faults, field.Invalid(requests, quantity.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && quantity.Cmp(limit) > 0:
			faults = append(faults, field.Invalid(requests, quantity.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return faults
}

// overcommittable: of the resources that Kubernetes knows itself, all but huge pages.
func overcommittable(name corev1.ResourceName) bool {
	return native(name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func native(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func resourceAmount(path *field.Path, name corev1.ResourceName, quantity resource.Quantity) field.ErrorList {
	faults := qualifiedName(path, string(name))
	if len(faults) == 0 && !strings.Contains(string(name), "/") {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		default:
			if !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
				faults = append(faults, field.Invalid(path, name, "must be a standard resource for containers"))
			}
		}
	}
	if quantity.Sign() < 0 {
		faults = append(faults, field.Invalid(path, quantity.String(), "must be greater than or equal to 0"))
	}
	if !native(name) && quantity.MilliValue()%1000 != 0 {
		faults = append(faults, field.Invalid(path, quantity.String(), "must be an integer"))
	}
	return faults
}
