package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"
)

// resourceRules judge requests and limits of a container, or of a pod as a whole.
type resourceRules struct {
	name   func(*field.Path, corev1.ResourceName) field.ErrorList
	claims map[string]bool // the names of the pod's resource claims
}

func (r resourceRules) validate(path *field.Path, q *corev1.ResourceRequirements) field.ErrorList {
	var faults field.ErrorList
	limits, requests := path.Child("limits"), path.Child("requests")
	for name, quantity := range inOrder(q.Limits) {
		faults = append(faults, r.amount(limits.Key(string(name)), name, quantity)...)
	}
	for name, quantity := range inOrder(q.Requests) {
		at := requests.Key(string(name))
		faults = append(faults, r.name(at, name)...)
		faults = append(faults, quantityOf(at, name, quantity)...)
		limit, limited := q.Limits[name]
		switch {
		case !limited && !overcommittable(name):
			faults = append(faults, field.Required(limits, "Limit must be set for non overcommitable resources"))
		case limited && !overcommittable(name) && quantity.Cmp(limit) != 0:
			faults = append(faults, field.Invalid(requests, quantity.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && quantity.Cmp(limit) > 0:
			faults = append(faults, field.Invalid(requests, quantity.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
		faults = append(faults, wholePages(at, name, quantity)...)
	}
	if has(q, isHugePages) && !has(q, func(n corev1.ResourceName) bool { return n == corev1.ResourceCPU || n == corev1.ResourceMemory }) {
		faults = append(faults, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return append(faults, r.claimed(path.Child("claims"), q.Claims)...)
}

func (r resourceRules) amount(path *field.Path, name corev1.ResourceName, quantity resource.Quantity) field.ErrorList {
	faults := r.name(path, name)
	faults = append(faults, quantityOf(path, name, quantity)...)
	return append(faults, wholePages(path, name, quantity)...)
}

// has says whether requests or limits name such a resource.
func has(q *corev1.ResourceRequirements, such func(corev1.ResourceName) bool) bool {
	for _, list := range []corev1.ResourceList{q.Limits, q.Requests} {
		for name := range list {
			if such(name) {
				return true
			}
		}
	}
	return false
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// overcommittable: of the resources that Kubernetes knows itself, all but huge pages.
func overcommittable(name corev1.ResourceName) bool { return native(name) && !isHugePages(name) }

func native(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// standardResources are the names without a domain that mean something anywhere: in a container, a quota, a node.
var standardResources = map[corev1.ResourceName]bool{
	"cpu": true, "memory": true, "ephemeral-storage": true, "requests.cpu": true, "requests.memory": true, "requests.ephemeral-storage": true,
	"limits.cpu": true, "limits.memory": true, "limits.ephemeral-storage": true, "pods": true, "resourcequotas": true, "services": true,
	"replicationcontrollers": true, "secrets": true, "configmaps": true, "persistentvolumeclaims": true, "storage": true,
	"requests.storage": true, "services.nodeports": true, "services.loadbalancers": true,
}

func resourceName(path *field.Path, name corev1.ResourceName) field.ErrorList {
	faults := invalid(path, name, validation.IsQualifiedName(string(name)))
	if len(faults) > 0 || strings.Contains(string(name), "/") {
		return faults
	}
	if !standardResources[name] && !isHugePages(name) && !strings.HasPrefix(string(name), "requests.hugepages-") {
		faults = append(faults, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	return faults
}

// containerResource is what a container can have: cpu, memory, a disk's space, huge pages, or what devices bring.
func containerResource(path *field.Path, name corev1.ResourceName) field.ErrorList {
	faults := resourceName(path, name)
	switch {
	case !strings.Contains(string(name), "/"):
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage && !isHugePages(name) {
			faults = append(faults, field.Invalid(path, name, "must be a standard resource for containers"))
		}
	case !native(name) && (strings.HasPrefix(string(name), "requests.") || len(validation.IsQualifiedName("requests."+string(name))) > 0):
		faults = append(faults, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return faults
}

// podResource is what can be set for a pod as a whole.
func podResource(path *field.Path, name corev1.ResourceName) field.ErrorList {
	faults := resourceName(path, name)
	if len(faults) == 0 && !resourcehelper.IsSupportedPodLevelResource(name) {
		faults = append(faults, field.NotSupported(path, name, slices.Sorted(maps.Keys(resourcehelper.SupportedPodLevelResources()))))
	}
	return faults
}

func quantityOf(path *field.Path, name corev1.ResourceName, quantity resource.Quantity) field.ErrorList {
	var faults field.ErrorList
	if quantity.Sign() < 0 {
		faults = append(faults, field.Invalid(path, quantity.String(), "must be greater than or equal to 0"))
	}
	if countedOnly(name) && quantity.MilliValue()%1000 != 0 {
		faults = append(faults, field.Invalid(path, quantity, "must be an integer"))
	}
	return faults
}

// countedOnly: there is no half of a device, nor of an object.
func countedOnly(name corev1.ResourceName) bool {
	switch name {
	case "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
		"services.nodeports", "services.loadbalancers":
		return true
	}
	return !native(name)
}

// wholePages: an amount of huge pages is a multiple of the size that is in the resource's name.
func wholePages(path *field.Path, name corev1.ResourceName, quantity resource.Quantity) field.ErrorList {
	if !isHugePages(name) {
		return nil
	}
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	if err == nil && size.Sign() > 0 && size.MilliValue()%1000 == 0 && quantity.Value()%size.Value() == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, quantity.String(), fmt.Sprintf("%s is not positive integer multiple of %s", quantity.String(), name))}
}

// claimed: a container uses claims of its pod, each of them, or each request of one, once.
func (r resourceRules) claimed(path *field.Path, claims []corev1.ResourceClaim) field.ErrorList {
	var faults field.ErrorList
	whole, part := map[string]bool{}, map[string]bool{} // whole claims, and "claim/request"
	for i, c := range claims {
		at := path.Index(i)
		if c.Name == "" {
			faults = append(faults, field.Required(at, ""))
			continue
		}
		key := c.Name + "/" + c.Request
		partOf := func(k string) bool { return strings.HasPrefix(k, c.Name+"/") }
		switch {
		case whole[c.Name]:
			faults = append(faults, field.Duplicate(at, c.Name))
		case c.Request == "":
			whole[c.Name] = true
			for range slices.DeleteFunc(slices.Collect(maps.Keys(part)), func(k string) bool { return !partOf(k) }) {
				faults = append(faults, field.Duplicate(at, c.Name))
			}
		default:
			faults = append(faults, dnsLabel(at.Child("request"), c.Request)...)
			if part[key] {
				faults = append(faults, field.Duplicate(at, key))
			}
			part[key] = true
		}
		if !r.claims[c.Name] {
			fault := field.NotFound(at, c.Name)
			fault.Detail = "must be one of the names in pod.spec.resourceClaims"
			if len(r.claims) == 0 {
				fault.Detail += " which is empty"
			} else {
				fault.Detail += ": " + strings.Join(slices.Sorted(maps.Keys(r.claims)), ", ")
			}
			faults = append(faults, fault)
		}
	}
	return faults
}
