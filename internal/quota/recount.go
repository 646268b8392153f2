package quota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// Recount is what objects of one resource use of a quota; names are those that For returns with the measure.
func (m *Measure) Recount(q *corev1.ResourceQuota, names []corev1.ResourceName, objects []runtime.Object, now time.Time) corev1.ResourceList {
	limits, sum := corev1.ResourceList{}, corev1.ResourceList{}
	for _, name := range names {
		limits[name] = resource.Quantity{Format: resource.DecimalSI}
		sum[name] = resource.Quantity{Format: resource.DecimalSI}
	}
	for _, obj := range objects {
		if m.covers(&q.Spec, obj) {
			add(sum, only(m.usage(obj, now), limits))
		}
	}
	return sum
}

// Frees says whether an object uses less of a quota after a change.
func (m *Measure) Frees(q *corev1.ResourceQuota, before, after runtime.Object, now time.Time) bool {
	was := m.usageOf(q, before, now)
	return len(was) > 0 && len(growth(was, m.usageOf(q, after, now))) > 0
}

// CountsOnly says whether the measure looks at nothing but that objects exist, so that their metadata is enough to
// recount these names of a quota.
func (m *Measure) CountsOnly(q *corev1.ResourceQuota, names []corev1.ResourceName) bool {
	if len(scopesOf(&q.Spec)) > 0 {
		return m.inScope == nil
	}
	usage := m.usage(nil, time.Time{})
	for _, name := range names {
		if _, ok := usage[name]; !ok {
			return false
		}
	}
	return true
}
