package registry

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateLimitRange: one item for each type, whose amounts are in order: min, default request, default, max.
func validateLimitRange(l *corev1.LimitRange) field.ErrorList {
	var faults field.ErrorList
	seen := names{}
	for i := range l.Spec.Limits {
		item, at := &l.Spec.Limits[i], specPath.Child("limits").Index(i)
		faults = append(faults, limitType(at.Child("type"), item.Type)...)
		faults = append(faults, seen.add(at.Child("type"), string(item.Type))...)
		faults = append(faults, limitNames(at, item)...)
		for name := range inOrder(limitedNames(item)) {
			faults = append(faults, limitOrder(at, item, name)...)
		}
	}
	return faults
}

func limitType(path *field.Path, t corev1.LimitType) field.ErrorList {
	if faults := qualifiedName(path, string(t)); len(faults) > 0 {
		return faults
	}
	switch t {
	case corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim:
		return nil
	}
	if strings.Contains(string(t), "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, t, "must be a standard limit type or fully qualified")}
}

// limitedName: containers and pods are limited in what containers can ask for, others in any standard resource.
func limitedName(path *field.Path, t corev1.LimitType, name corev1.ResourceName) field.ErrorList {
	if t == corev1.LimitTypePod || t == corev1.LimitTypeContainer {
		return containerResource(path, name)
	}
	return resourceName(path, name)
}

// limitLists are the amounts of an item by the names of their fields.
func limitLists(item *corev1.LimitRangeItem) map[string]corev1.ResourceList {
	return map[string]corev1.ResourceList{
		"max": item.Max, "min": item.Min, "default": item.Default, "defaultRequest": item.DefaultRequest, "maxLimitRequestRatio": item.MaxLimitRequestRatio,
	}
}

func limitNames(path *field.Path, item *corev1.LimitRangeItem) field.ErrorList {
	var faults field.ErrorList
	for child, list := range inOrder(limitLists(item)) {
		if item.Type == corev1.LimitTypePod && strings.HasPrefix(child, "default") {
			if len(list) > 0 {
				faults = append(faults, field.Forbidden(path.Child(child), "may not be specified when `type` is 'Pod'"))
			}
			continue
		}
		for name := range inOrder(list) {
			faults = append(faults, limitedName(path.Child(child).Key(string(name)), item.Type, name)...)
		}
	}
	if item.Type == corev1.LimitTypePersistentVolumeClaim {
		_, least := item.Min[corev1.ResourceStorage]
		_, most := item.Max[corev1.ResourceStorage]
		if !least && !most {
			faults = append(faults, field.Required(path.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	return faults
}

func limitedNames(item *corev1.LimitRangeItem) map[corev1.ResourceName]bool {
	out := map[corev1.ResourceName]bool{}
	for _, list := range limitLists(item) {
		for name := range list {
			out[name] = true
		}
	}
	return out
}

// limitOrder compares the amounts of one resource, two by two.
func limitOrder(path *field.Path, item *corev1.LimitRangeItem, name corev1.ResourceName) field.ErrorList {
	var faults field.ErrorList
	lists := limitLists(item)
	if item.Type == corev1.LimitTypePod {
		delete(lists, "default")
		delete(lists, "defaultRequest")
	}
	for _, c := range []struct{ low, high, blamed, detail string }{
		{"min", "max", "min", "min value %s is greater than max value %s"},
		{"min", "defaultRequest", "defaultRequest", "min value %s is greater than default request value %s"},
		{"defaultRequest", "max", "defaultRequest", "default request value %s is greater than max value %s"},
		{"defaultRequest", "default", "defaultRequest", "default request value %s is greater than default limit value %s"},
		{"min", "default", "default", "min value %s is greater than default value %s"},
		{"default", "max", "default", "default value %s is greater than max value %s"},
	} {
		low, hasLow := lists[c.low][name]
		high, hasHigh := lists[c.high][name]
		if hasLow && hasHigh && low.Cmp(high) > 0 {
			detail := fmt.Sprintf(c.detail, quantityText(low), quantityText(high))
			value := low
			if c.low == "default" || c.high == "defaultRequest" { // Kubernetes shows the other one here
				value = high
			}
			faults = append(faults, field.Invalid(path.Child(c.blamed).Key(string(name)), quantityText(value), detail))
		}
	}
	ratio, has := item.MaxLimitRequestRatio[name]
	at := path.Child("maxLimitRequestRatio").Key(string(name))
	if has && ratio.Cmp(resource.MustParse("1")) < 0 {
		faults = append(faults, field.Invalid(at, quantityText(ratio), fmt.Sprintf("ratio %s is less than 1", quantityText(ratio))))
	}
	least, hasLeast := item.Min[name]
	most, hasMost := item.Max[name]
	if has && hasLeast && hasMost {
		if limit := most.AsApproximateFloat64() / least.AsApproximateFloat64(); ratio.AsApproximateFloat64() > limit {
			faults = append(faults, field.Invalid(at, quantityText(ratio), fmt.Sprintf("ratio %s is greater than max/min = %f", quantityText(ratio), limit)))
		}
	}
	request, hasRequest := lists["defaultRequest"][name]
	limit, hasLimit := lists["default"][name]
	if hasRequest && hasLimit && !overcommittable(name) && limit.Cmp(request) != 0 {
		faults = append(faults, field.Invalid(path.Child("defaultRequest").Key(string(name)), quantityText(request),
			fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", quantityText(limit), quantityText(request), name)))
	}
	return faults
}
