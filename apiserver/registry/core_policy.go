package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// limitRanges. Admission applies them to pods (apiserver/admission/limitranger.go).
func limitRanges() *Resource {
	r := newRow[corev1.LimitRange, corev1.LimitRangeList](corev1.SchemeGroupVersion, "limitranges", "LimitRange")
	r.ShortNames = []string{"limits"}
	r.Strategy = Strategy{NoGeneration: true, AllowCreateOnUpdate: true, Default: defaulter(defaultLimitRange), Validate: validator(validateLimitRange)}
	r.Columns = columns([]string{"Name", "Created At:date"})
	r.Row = cells(func(l *corev1.LimitRange, _ time.Time) []any {
		return []any{l.Name, l.CreationTimestamp.UTC().Format(time.RFC3339)}
	})
	return r
}

// defaultLimitRange: for containers, a maximum is the default limit, a default limit the default
// request, and failing that the minimum is.
func defaultLimitRange(l *corev1.LimitRange) {
	fill := func(into, from corev1.ResourceList) {
		for name, quantity := range from {
			if _, ok := into[name]; !ok {
				into[name] = quantity.DeepCopy()
			}
		}
	}
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		if item.Default == nil {
			item.Default = corev1.ResourceList{}
		}
		if item.DefaultRequest == nil {
			item.DefaultRequest = corev1.ResourceList{}
		}
		fill(item.Default, item.Max)
		fill(item.DefaultRequest, item.Default)
		fill(item.DefaultRequest, item.Min)
	}
}

// resourceQuotas. What is refused is in resourcequota_validation.go. Admission counts (apiserver/admission/resourcequota.go).
func resourceQuotas() *Resource {
	r := newRow[corev1.ResourceQuota, corev1.ResourceQuotaList](corev1.SchemeGroupVersion, "resourcequotas", "ResourceQuota")
	r.ShortNames = []string{"quota"}
	r.Strategy = Strategy{
		NoGeneration:   true,
		ReturnDeleted:  true,
		Default:        defaulter(func(q *corev1.ResourceQuota) { roundUp(q.Spec.Hard); roundUp(q.Status.Hard); roundUp(q.Status.Used) }),
		Validate:       validator(validateResourceQuota),
		ValidateUpdate: updateValidator(validateResourceQuotaUpdate),
	}
	r.Subresources = []Subresource{judged(statusOf(r, func(q, old *corev1.ResourceQuota) { q.Spec = old.Spec }), validateResourceQuotaStatus)}
	r.Columns, r.Row = columns([]string{"Name", "Request", "Limit", "Age"}), cells(resourceQuotaRow)
	return r
}

func resourceQuotaRow(q *corev1.ResourceQuota, now time.Time) []any {
	var requests, limits []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		text := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), age(&q.ObjectMeta, now)}
}
