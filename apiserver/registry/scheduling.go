package registry

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// highestUserPriority leaves room above for the two classes of the system.
const highestUserPriority = 1000000000

// schedulingRows. Not yet: pods do not look their class up (see pod_prepare.go), and the two system
// classes are not objects.
func schedulingRows() []*Resource {
	r := newRow[schedulingv1.PriorityClass, schedulingv1.PriorityClassList](schedulingv1.SchemeGroupVersion, "priorityclasses", "PriorityClass")
	r.ShortNames, r.Namespaced = []string{"pc"}, false
	r.Strategy = Strategy{
		Default: defaulter(func(c *schedulingv1.PriorityClass) { setPointer(&c.PreemptionPolicy, corev1.PreemptLowerPriority) }),
		Validate: validator(func(c *schedulingv1.PriorityClass) field.ErrorList {
			var faults field.ErrorList
			if strings.HasPrefix(c.Name, "system-") {
				faults = append(faults, field.Forbidden(field.NewPath("metadata", "name"), "priority class names with 'system-' prefix are reserved for system use only"))
			} else if c.Value > highestUserPriority {
				faults = append(faults, field.Forbidden(field.NewPath("value"), "maximum allowed value of a user defined priority is 1000000000"))
			}
			return append(faults, oneOf(field.NewPath("preemptionPolicy"), *c.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
		}),
		NoGeneration:     true, // it is 1 for ever
		PrepareForCreate: preparer(func(c *schedulingv1.PriorityClass) { c.Generation = 1 }),
		UpdateRulesOnly:  true,
		ValidateUpdate: updateValidator(func(c, old *schedulingv1.PriorityClass) field.ErrorList {
			faults := immutable(field.NewPath("preemptionPolicy"), c.PreemptionPolicy, old.PreemptionPolicy)
			if c.Value != old.Value {
				faults = append(faults, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
			}
			return faults
		}),
	}
	r.Columns = columns([]string{"Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"})
	r.Row = cells(func(c *schedulingv1.PriorityClass, now time.Time) []any {
		policy := ""
		if c.PreemptionPolicy != nil {
			policy = string(*c.PreemptionPolicy)
		}
		return []any{c.Name, int64(c.Value), c.GlobalDefault, age(&c.ObjectMeta, now), policy}
	})
	return []*Resource{r}
}
