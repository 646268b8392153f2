package registry

import (
	"time"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nodeRows are those of node.k8s.io. Not yet: pods do not get the overhead and the scheduling rules
// of their class.
func nodeRows() []*Resource {
	r := newRow[nodev1.RuntimeClass, nodev1.RuntimeClassList](nodev1.SchemeGroupVersion, "runtimeclasses", "RuntimeClass")
	r.Namespaced = false
	r.Strategy = Strategy{
		NoGeneration:         true,
		AllowCreateOnUpdate:  true,
		NeedsResourceVersion: true,
		Validate: validator(func(c *nodev1.RuntimeClass) field.ErrorList {
			return dnsLabel(field.NewPath("handler"), c.Handler)
		}),
		ValidateUpdate: updateValidator(func(c, old *nodev1.RuntimeClass) field.ErrorList {
			return immutable(field.NewPath("handler"), c.Handler, old.Handler)
		}),
	}
	r.Columns = columns([]string{"Name", "Handler", "Age"})
	r.Row = cells(func(c *nodev1.RuntimeClass, now time.Time) []any {
		return []any{c.Name, c.Handler, age(&c.ObjectMeta, now)}
	})
	return []*Resource{r}
}
