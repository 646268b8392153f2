package registry

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// highestUserPriority leaves room above for the two classes of the system.
const highestUserPriority = 1000000000

// SystemPriorityClasses are the classes of pods that a cluster, or a node, cannot do without. They exist in every cluster.
func SystemPriorityClasses() []*schedulingv1.PriorityClass {
	const critical = 2 * highestUserPriority
	preempt := corev1.PreemptLowerPriority
	return []*schedulingv1.PriorityClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "system-cluster-critical"}, Value: critical, PreemptionPolicy: &preempt,
		Description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
	}, {
		ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}, Value: critical + 1000, PreemptionPolicy: &preempt,
		Description: "Used for system critical pods that must not be moved from their current node.",
	}}
}

func isSystemPriorityClass(c *schedulingv1.PriorityClass) bool {
	return slices.ContainsFunc(SystemPriorityClasses(), func(s *schedulingv1.PriorityClass) bool {
		return s.Name == c.Name && s.Value == c.Value && s.GlobalDefault == c.GlobalDefault
	})
}

func schedulingRows() []*Resource {
	r := newRow[schedulingv1.PriorityClass, schedulingv1.PriorityClassList](schedulingv1.SchemeGroupVersion, "priorityclasses", "PriorityClass")
	r.ShortNames, r.Namespaced = []string{"pc"}, false
	r.Strategy = Strategy{
		Default: defaulter(func(c *schedulingv1.PriorityClass) { setPointer(&c.PreemptionPolicy, corev1.PreemptLowerPriority) }),
		Validate: validator(func(c *schedulingv1.PriorityClass) field.ErrorList {
			var faults field.ErrorList
			if isSystemPriorityClass(c) {
				// they may come back
			} else if strings.HasPrefix(c.Name, "system-") {
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
