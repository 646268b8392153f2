package registry

import (
	coordinationv1 "k8s.io/api/coordination/v1"
)

func coordinationRows() []*Resource {
	r := newRow[coordinationv1.Lease, coordinationv1.LeaseList](coordinationv1.SchemeGroupVersion, "leases", "Lease")
	r.Strategy = Strategy{NoGeneration: true, AllowCreateOnUpdate: true}
	return []*Resource{r}
}
