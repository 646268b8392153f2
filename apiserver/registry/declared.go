package registry

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// gates are the feature gates that declared rules ask for, as they are in Kubernetes 1.37 by default. A rule
// that asks for another one is a fault in every object: TestDeclaredGates finds it first.
var gates = map[string]bool{
	"CompositePodGroup":                            false,
	"DRAPartitionableDevicesType":                  false,
	"HPAScaleToZero":                               true,
	"InPlacePodVerticalScalingSchedulerPreemption": false,
	"PodGroupPreemptionPolicy":                     false,
	"TopologyAwareWorkloadScheduling":              false,
	"WorkloadWithJob":                              false,
}

// declare adds to the row's own validation what Kubernetes declares on the row's type (package
// validations). While Kubernetes moves its rules from code to tags, many are in both places: see merged.
//
// On an update, a declared rule does not judge a value that has not changed.
func declare(s *runtime.Scheme, r *Resource) {
	if !s.HasValidationFunc(r.New()) {
		return
	}
	own := r.Strategy.Validate
	r.Strategy.Validate = func(ctx context.Context, obj runtime.Object) field.ErrorList {
		var faults field.ErrorList
		if own != nil {
			faults = own(ctx, obj)
		}
		if exists(obj) { // an update: the next func's business
			return faults
		}
		return merged(ctx, faults, s.Validate(ctx, gates, obj))
	}
	r.Strategy.declaredUpdate = func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
		return s.ValidateUpdate(ctx, gates, obj, old)
	}
	for i := range r.Subresources {
		declareSubresource(s, r, &r.Subresources[i])
	}
}

// JudgeUpdate returns all faults of obj as the next version of old: those that it has by itself, and those of
// the change.
func (s *Strategy) JudgeUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	var faults field.ErrorList
	if s.Validate != nil && !s.UpdateRulesOnly {
		faults = s.Validate(ctx, obj)
	}
	if s.ValidateUpdate != nil {
		faults = append(faults, s.ValidateUpdate(ctx, obj, old)...)
	}
	if s.declaredUpdate != nil {
		faults = merged(ctx, faults, s.declaredUpdate(ctx, obj, old))
	}
	return faults
}

// declareSubresource does it for a subresource that shows the row's own kind and has rules of its own.
func declareSubresource(s *runtime.Scheme, r *Resource, sub *Subresource) {
	own := sub.Validate
	if sub.Update == nil || own == nil || sub.Kind != r.GroupVersionKind() {
		return
	}
	name := sub.Name
	sub.Validate = func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
		return merged(ctx, own(ctx, obj, old), s.ValidateUpdate(ctx, gates, obj, old, name))
	}
}

// exists says whether obj is the next version of an object, rather than a new one.
func exists(obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	return err == nil && m.GetResourceVersion() != ""
}

// merged puts the declared faults after own, which are those of the hand-written rules. What Kubernetes still
// tries out (alpha) is not enforced; of two faults that say the same, the declared one stays. Hand-written rules that
// overlap say it once. The generic path judges the metadata.
func merged(ctx context.Context, own, declared field.ErrorList) field.ErrorList {
	declared = validate.FilterEnforcedDeclarativeErrors(ctx, declared, true)
	declared = slices.DeleteFunc(declared, func(fault *field.Error) bool { return strings.HasPrefix(fault.Field, "metadata.") })
	said := map[string]bool{}
	own = slices.DeleteFunc(own, func(fault *field.Error) bool {
		text := fault.Error()
		again := said[text]
		said[text] = true
		return again || slices.ContainsFunc(declared, func(other *field.Error) bool { return sameFault(fault, other) })
	})
	return append(own, declared...)
}

// sameFault: a value may be invalid in several ways; all other causes are the same if they are of one field.
func sameFault(a, b *field.Error) bool {
	if a.Field != b.Field || a.Type != b.Type {
		return false
	}
	return a.Type != field.ErrorTypeInvalid || a.Detail == b.Detail || a.Origin != "" && a.Origin == b.Origin
}
