package registry

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nodeRows are those of node.k8s.io. Pods get the overhead and the scheduling rules of their class from
// admission.
func nodeRows() []*Resource {
	r := newRow[nodev1.RuntimeClass, nodev1.RuntimeClassList](nodev1.SchemeGroupVersion, "runtimeclasses", "RuntimeClass")
	r.Namespaced = false
	r.Strategy = Strategy{
		NoGeneration:         true,
		AllowCreateOnUpdate:  true,
		NeedsResourceVersion: true,
		Validate:             validator(validateRuntimeClass),
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

func validateRuntimeClass(c *nodev1.RuntimeClass) field.ErrorList {
	faults := dnsLabel(field.NewPath("handler"), c.Handler).WithOrigin("format=k8s-short-name") // declared too
	if o := c.Overhead; o != nil {
		faults = append(faults, resourceRules{name: containerResource}.validate(field.NewPath("overhead"), &corev1.ResourceRequirements{Limits: o.PodFixed})...)
	}
	s, path := c.Scheduling, field.NewPath("scheduling")
	if s == nil {
		return faults
	}
	faults = append(faults, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	faults = append(faults, validateTolerations(path.Child("tolerations"), s.Tolerations)...)
	for i, t := range s.Tolerations {
		if slices.ContainsFunc(s.Tolerations[:i], func(other corev1.Toleration) bool { return other.MatchToleration(&t) }) {
			faults = append(faults, field.Duplicate(path.Child("tolerations").Index(i), shown(t)))
		}
	}
	return faults
}
