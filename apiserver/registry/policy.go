package registry

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// policyRows: budgets, which evictions ask (apiserver/evict.go) and a controller counts.
func policyRows() []*Resource {
	r := newRow[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion, "poddisruptionbudgets", "PodDisruptionBudget")
	r.ShortNames = []string{"pdb"}
	r.Strategy = Strategy{Validate: validator(validateBudget), NeedsResourceVersion: true}
	r.Subresources = []Subresource{judged(statusOf(r, func(b, old *policyv1.PodDisruptionBudget) { b.Spec = old.Spec }), validateBudgetStatus)}
	r.Columns = columns([]string{"Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"})
	r.Row = cells(func(b *policyv1.PodDisruptionBudget, now time.Time) []any {
		amount := func(v *intstr.IntOrString) string {
			if v == nil {
				return "N/A"
			}
			return v.String()
		}
		return []any{b.Name, amount(b.Spec.MinAvailable), amount(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed), age(&b.ObjectMeta, now)}
	})
	return []*Resource{r}
}

func validateBudget(b *policyv1.PodDisruptionBudget) field.ErrorList {
	spec := &b.Spec
	var faults field.ErrorList
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		faults = append(faults, field.Invalid(specPath, shown(spec), "minAvailable and maxUnavailable cannot be both set"))
	}
	for _, limit := range []struct {
		child string
		v     *intstr.IntOrString
	}{{"minAvailable", spec.MinAvailable}, {"maxUnavailable", spec.MaxUnavailable}} {
		if limit.v != nil {
			faults = append(faults, share(specPath.Child(limit.child), limit.v)...)
			faults = append(faults, atMostAll(specPath.Child(limit.child), limit.v)...)
		}
	}
	faults = append(faults, metavalidation.ValidateLabelSelector(spec.Selector, metavalidation.LabelSelectorValidationOptions{}, specPath.Child("selector"))...)
	if p := spec.UnhealthyPodEvictionPolicy; p != nil {
		faults = append(faults, supported(specPath.Child("unhealthyPodEvictionPolicy"), *p, policyv1.AlwaysAllow, policyv1.IfHealthyBudget)...)
	}
	return faults
}

func validateBudgetStatus(b *policyv1.PodDisruptionBudget) field.ErrorList {
	s := &b.Status
	faults := metavalidation.ValidateConditions(s.Conditions, statusPath.Child("conditions"))
	return append(faults, counters(counter{"disruptionsAllowed", int64(s.DisruptionsAllowed)}, counter{"currentHealthy", int64(s.CurrentHealthy)},
		counter{"desiredHealthy", int64(s.DesiredHealthy)}, counter{"expectedPods", int64(s.ExpectedPods)})...)
}
