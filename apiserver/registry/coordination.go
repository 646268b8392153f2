package registry

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

func coordinationRows() []*Resource {
	r := newRow[coordinationv1.Lease, coordinationv1.LeaseList](coordinationv1.SchemeGroupVersion, "leases", "Lease")
	r.Strategy = Strategy{NoGeneration: true, AllowCreateOnUpdate: true}
	r.Columns, r.Row = columns([]string{"Name", "Holder", "Age"}), cells(leaseRow)
	return []*Resource{r}
}

func leaseRow(l *coordinationv1.Lease, now time.Time) []any {
	holder := ""
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	return []any{l.Name, holder, age(&l.ObjectMeta, now)}
}
