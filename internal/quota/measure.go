package quota

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Measure is how the objects of one resource count.
type Measure struct {
	Resource schema.GroupResource
	// tracks says whether objects of this resource can use the quota resource of that name.
	tracks func(name corev1.ResourceName) bool
	// usage is what an object uses at a time.
	usage func(obj runtime.Object, now time.Time) corev1.ResourceList
	// inScope says whether an object is in a scope; nil: there are no scopes for this resource, so that no quota with
	// one concerns it.
	inScope func(scope corev1.ScopedResourceSelectorRequirement, obj runtime.Object) bool
	// demands is nil if obj says all that a quota of these resources wants said.
	demands func(names []corev1.ResourceName, obj runtime.Object) error
	// grows says whether an update through the subresource can use more than before; nil: no update can.
	grows func(subresource string, obj, old runtime.Object) bool
}

// measured are the resources that have more to count than their objects, or that have an older name for that.
var measured = []*Measure{
	podMeasure(), serviceMeasure(), claimMeasure(), deviceClaimMeasure(),
	countOf(corev1.Resource("configmaps"), corev1.ResourceConfigMaps),
	countOf(corev1.Resource("replicationcontrollers"), corev1.ResourceReplicationControllers),
	countOf(corev1.Resource("resourcequotas"), corev1.ResourceQuotas),
	countOf(corev1.Resource("secrets"), corev1.ResourceSecrets),
}

// Of returns the measure of a resource; nil for events, which count against no quota.
func Of(resource schema.GroupResource) *Measure {
	if resource.Resource == "events" && (resource.Group == corev1.GroupName || resource.Group == "events.k8s.io") {
		return nil
	}
	for _, m := range measured {
		if m.Resource == resource {
			return m
		}
	}
	return countOf(resource, "")
}

// countPrefix begins the names of quota resources that count objects.
const countPrefix = "count/"

// countName is the quota resource that counts the objects of a resource: "count/pods", "count/jobs.batch".
func countName(resource schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName(countPrefix + resource.String())
}

// countOf counts objects, also under an alias that is older.
func countOf(resource schema.GroupResource, alias corev1.ResourceName) *Measure {
	names := []corev1.ResourceName{countName(resource)}
	if alias != "" {
		names = append(names, alias)
	}
	return &Measure{
		Resource: resource,
		tracks:   func(name corev1.ResourceName) bool { return slices.Contains(names, name) },
		usage: func(runtime.Object, time.Time) corev1.ResourceList {
			out := corev1.ResourceList{}
			for _, name := range names {
				out[name] = one()
			}
			return out
		},
	}
}

// For returns the measures that a quota of these hard limits needs, and with each the names that it tracks.
func For(hard corev1.ResourceList) map[*Measure][]corev1.ResourceName {
	out := map[*Measure][]corev1.ResourceName{}
	for name := range hard {
		known := false
		for _, m := range measured {
			if m.tracks(name) {
				out[m] = append(out[m], name)
				known = true
			}
		}
		if counted, ok := strings.CutPrefix(string(name), countPrefix); ok && !known {
			if m := Of(schema.ParseGroupResource(counted)); m != nil {
				out[m] = append(out[m], name)
			}
		}
	}
	return out
}

// tracked are the limits of a quota that the measure tracks.
func (m *Measure) tracked(limits corev1.ResourceList) []corev1.ResourceName {
	var out []corev1.ResourceName
	for name := range limits {
		if m.tracks(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// covers says whether an object is in all scopes of a quota.
func (m *Measure) covers(spec *corev1.ResourceQuotaSpec, obj runtime.Object) bool {
	for _, scope := range scopesOf(spec) {
		if m.inScope == nil || !m.inScope(scope, obj) {
			return false
		}
	}
	return true
}

func scopesOf(spec *corev1.ResourceQuotaSpec) []corev1.ScopedResourceSelectorRequirement {
	var out []corev1.ScopedResourceSelectorRequirement
	for _, scope := range spec.Scopes {
		out = append(out, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if spec.ScopeSelector != nil {
		out = append(out, spec.ScopeSelector.MatchExpressions...)
	}
	return out
}

// named says whether a scope selects an object that has these names of its kind: of priority or attributes classes.
func named(scope corev1.ScopedResourceSelectorRequirement, names []string) bool {
	listed := func(name string) bool { return slices.Contains(scope.Values, name) }
	switch scope.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.ContainsFunc(names, listed)
	case corev1.ScopeSelectorOpNotIn:
		return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return !listed(name) })
	case corev1.ScopeSelectorOpExists:
		return len(names) > 0
	case corev1.ScopeSelectorOpDoesNotExist:
		return len(names) == 0
	}
	return false
}
