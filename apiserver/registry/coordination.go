package registry

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func coordinationRows() []*Resource {
	r := newRow[coordinationv1.Lease, coordinationv1.LeaseList](coordinationv1.SchemeGroupVersion, "leases", "Lease")
	r.Strategy = Strategy{NoGeneration: true, AllowCreateOnUpdate: true, NeedsResourceVersion: true, Validate: validator(validateLease)}
	r.Columns, r.Row = columns([]string{"Name", "Holder", "Age"}), cells(leaseRow)
	return []*Resource{r}
}

// validateLease. Not yet: coordinated leader election (spec.strategy).
func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var faults field.ErrorList
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		faults = append(faults, field.Invalid(specPath.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil {
		faults = append(faults, notNegative(specPath.Child("leaseTransitions"), *n)...)
	}
	return faults
}

func leaseRow(l *coordinationv1.Lease, now time.Time) []any {
	holder := ""
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	return []any{l.Name, holder, age(&l.ObjectMeta, now)}
}
