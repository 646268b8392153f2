package quota

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Use is a write that may use more of a quota than was used before.
type Use struct {
	Subresource string
	Object      runtime.Object // as it will be
	Old         runtime.Object // as it is; nil when it is created
	Now         time.Time
}

// Counts says whether the write can use more at all, of whichever quota.
func (m *Measure) Counts(u Use) bool {
	if u.Old == nil {
		return u.Subresource == ""
	}
	return m.grows != nil && m.grows(u.Subresource, u.Object, u.Old)
}

// Charge returns what of the quota is used when the write has happened; nil if it uses no more than before. The error
// says which limit would be exceeded, or what the object has to say first, in the words that kube-apiserver has for it.
func (m *Measure) Charge(q *corev1.ResourceQuota, u Use) (corev1.ResourceList, error) {
	names := m.tracked(q.Status.Hard)
	if len(names) == 0 || !m.covers(&q.Spec, u.Object) {
		return nil, nil
	}
	if m.demands != nil {
		if err := m.demands(names, u.Object); err != nil {
			return nil, fmt.Errorf("failed quota: %s: %w", q.Name, err)
		}
	}
	for _, name := range names {
		if _, ok := q.Status.Used[name]; !ok { // the controller has not counted yet
			return nil, fmt.Errorf("status unknown for quota: %s, resources: %s", q.Name, namesText(names))
		}
	}
	asked, err := m.more(q, u)
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	used := corev1.ResourceList{}
	add(used, q.Status.Used)
	add(used, asked)
	if u.Subresource == "status" { // it is taken already
		return used, nil
	}
	exceeded := corev1.ResourceList{}
	for name, limit := range q.Status.Hard {
		if _, ok := asked[name]; ok {
			if now := used[name]; now.Cmp(limit) > 0 {
				exceeded[name] = limit
			}
		}
	}
	if len(exceeded) > 0 {
		return nil, fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
			q.Name, text(only(asked, exceeded)), text(only(q.Status.Used, exceeded)), text(exceeded))
	}
	return used, nil
}

// more is what the write uses in addition, of what the quota limits.
func (m *Measure) more(q *corev1.ResourceQuota, u Use) (corev1.ResourceList, error) {
	usage := m.usage(u.Object, u.Now)
	var negative []corev1.ResourceName
	for name, amount := range usage {
		if amount.Sign() < 0 {
			negative = append(negative, name)
		}
	}
	if len(negative) > 0 {
		return nil, fmt.Errorf("quota usage is negative for resource(s): %s", namesText(negative))
	}
	var before corev1.ResourceList
	if u.Old != nil {
		before = m.usageOf(q, u.Old, u.Now)
	}
	return only(growth(usage, before), q.Status.Hard), nil
}

// usageOf is what an object uses of a quota; nil if it is not in its scopes.
func (m *Measure) usageOf(q *corev1.ResourceQuota, obj runtime.Object, now time.Time) corev1.ResourceList {
	if !m.covers(&q.Spec, obj) {
		return nil
	}
	return only(m.usage(obj, now), q.Spec.Hard)
}
