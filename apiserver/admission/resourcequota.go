package admission

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/internal/quota"
)

// resourceQuota refuses what would exceed a quota of its namespace, and charges what does not: the quota's
// status.used is written in the transaction that writes the object. So of many who create at the same time, on whichever
// server, none gets more than is left, and a create that fails leaves no charge behind. What is deleted or ends is given back by
// the quota controller, which recounts (controllers/resourcequota.go).
type resourceQuota struct{ objects Objects }

var resourceQuotas = corev1.SchemeGroupVersion.WithResource("resourcequotas")

// Charge implements Charger.
func (p resourceQuota) Charge(ctx context.Context, r *Request) error {
	if r.Namespace == "" || r.Resource.Resource == "namespaces" {
		return nil
	}
	measure := quota.Of(r.Resource.GroupResource())
	use := quota.Use{Subresource: r.Subresource, Object: r.Object, Old: r.Old, Now: time.Now()}
	if measure == nil || !measure.Counts(use) {
		return nil
	}
	all, err := p.objects.List(ctx, resourceQuotas, r.Namespace)
	if err != nil || len(all) == 0 {
		return err
	}
	for _, q := range inOrderOfName(all) {
		used, err := measure.Charge(q, use)
		if r.Beside == nil { // a dry run
			if err != nil {
				return refused(r, "%w", err)
			}
			continue
		}
		if used == nil && err == nil {
			continue
		}
		if err := chargeTo(ctx, r, measure, q.Name, use); err != nil {
			return err
		}
	}
	return nil
}

// chargeTo charges the newest version of a quota.
func chargeTo(ctx context.Context, r *Request, measure *quota.Measure, name string, use quota.Use) error {
	held, err := r.Beside(ctx, resourceQuotas, r.Namespace, name)
	if err != nil {
		return err
	}
	obj, err := held.Object()
	if err != nil || obj == nil {
		return err
	}
	q := obj.(*corev1.ResourceQuota)
	used, err := measure.Charge(q, use)
	if err != nil {
		return refused(r, "%w", err)
	}
	if used != nil {
		q = q.DeepCopy()
		q.Status.Used = used
		held.Set(q)
	}
	return nil
}

// inOrderOfName are the quotas in the order in which all requests take hold of them.
func inOrderOfName(all []runtime.Object) []*corev1.ResourceQuota {
	var out []*corev1.ResourceQuota
	for _, o := range all {
		if q, ok := o.(*corev1.ResourceQuota); ok {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.ResourceQuota) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
