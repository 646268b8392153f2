package customresources

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// validate is a Strategy's Validate: of what is created.
func (s *served) validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	c, err := s.schemaOf(s.version)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	u := obj.(*unstructured.Unstructured).Object
	faults := validation.ValidateCustomResource(nil, u, c.validator)
	faults = append(faults, s.replicasFaults(u)...)
	faults = append(faults, s.scaleStatusFaults(u)...)
	faults = append(faults, objectmeta.Validate(ctx, nil, u, c.schema, false)...)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, c.schema, u)...)
	return append(faults, c.ruleFaults(ctx, faults, u, nil)...)
}

// validateUpdate is a Strategy's ValidateUpdate. What has not changed may break rules that are younger (ratcheting).
func (s *served) validateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	c, err := s.schemaOf(s.version)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	u, before := obj.(*unstructured.Unstructured).Object, old.(*unstructured.Unstructured).Object
	pair := common.NewCorrelatedObject(u, before, &model.Structural{Structural: c.schema})
	faults := validation.ValidateCustomResourceUpdate(nil, u, before, c.validator, validation.WithRatcheting(pair))
	faults = append(faults, s.replicasFaults(u)...)
	faults = append(faults, s.scaleStatusFaults(u)...)
	faults = append(faults, objectmeta.Validate(ctx, nil, u, c.schema, false)...)
	faults = append(faults, c.listFaults(u, before)...)
	return append(faults, c.ruleFaults(ctx, faults, u, before, cel.WithRatcheting(pair))...)
}

// validateStatus judges a write of the status by the schema of the status alone; rules see the whole object.
func (s *served) validateStatus(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	c, err := s.schemaOf(s.version)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	u, before := obj.(*unstructured.Unstructured).Object, old.(*unstructured.Unstructured).Object
	pair := common.NewCorrelatedObject(u, before, &model.Structural{Structural: c.schema})
	var options []validation.ValidationOption
	if c.schema != nil {
		options = append(options, validation.WithRatcheting(pair.Key("status")))
	}
	var faults field.ErrorList
	if status, ok := u["status"]; ok && c.statusValidator != nil {
		faults = validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, before["status"], c.statusValidator, options...)
	}
	faults = append(faults, s.scaleStatusFaults(u)...)
	faults = append(faults, c.listFaults(u, before)...)
	return append(faults, c.ruleFaults(ctx, faults, u, before, cel.WithRatcheting(pair))...)
}

// listFaults are the doubles in sets and maps, unless there were some before.
func (c *compiled) listFaults(u, before map[string]any) field.ErrorList {
	faults := listtype.ValidateListSetsAndMaps(nil, c.schema, u)
	if len(faults) > 0 && len(listtype.ValidateListSetsAndMaps(nil, c.schema, before)) > 0 {
		return nil
	}
	return faults
}

// blocking are the types of faults after which rules would look at values of the wrong type or beyond all bounds.
var blocking = []field.ErrorType{field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid}

// ruleFaults are those of x-kubernetes-validations. before is nil on a create.
func (c *compiled) ruleFaults(ctx context.Context, known field.ErrorList, u, before map[string]any, options ...cel.Option) field.ErrorList {
	if c.rules == nil {
		return nil
	}
	if slices.ContainsFunc(known, func(f *field.Error) bool { return slices.Contains(blocking, f.Type) }) {
		return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
	}
	var old any
	if before != nil {
		old = before
	}
	faults, _ := c.rules.Validate(ctx, nil, c.schema, u, old, celconfig.RuntimeCELCostBudget, options...)
	return faults
}

// replicasFaults judges what the scale subresource shows of the wish.
func (s *served) replicasFaults(u map[string]any) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	return countFaults(u, s.scale.SpecReplicasPath)
}

// scaleStatusFaults judges what the scale subresource shows of the status.
func (s *served) scaleStatusFaults(u map[string]any) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	faults := countFaults(u, s.scale.StatusReplicasPath)
	if path := s.scale.LabelSelectorPath; path != nil {
		if selector, _, err := unstructured.NestedString(u, steps(*path)...); err != nil {
			faults = append(faults, field.Invalid(field.NewPath(*path), selector, err.Error()))
		}
	}
	return faults
}

func countFaults(u map[string]any, path string) field.ErrorList {
	at := field.NewPath(path)
	switch n, _, err := unstructured.NestedInt64(u, steps(path)...); {
	case err != nil:
		return field.ErrorList{field.Invalid(at, n, err.Error())}
	case n < 0:
		return field.ErrorList{field.Invalid(at, n, "should be a non-negative integer")}
	case n > math.MaxInt32:
		return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}

// finalizerWarnings: names of finalizers that others may use by accident. Built-in kinds refuse them.
func finalizerWarnings(_ context.Context, obj, old runtime.Object) []string {
	var before []string
	if old != nil {
		before = old.(*unstructured.Unstructured).GetFinalizers()
	}
	var out []string
	added := slices.DeleteFunc(obj.(*unstructured.Unstructured).GetFinalizers(), func(name string) bool { return slices.Contains(before, name) })
	slices.Sort(added)
	for _, name := range slices.Compact(added) {
		for _, fault := range utilvalidation.IsQualifiedName(name) {
			out = append(out, fmt.Sprintf("metadata.finalizers: %q: %s", name, fault))
		}
		standard := name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents || name == string(corev1.FinalizerKubernetes)
		if standard || strings.Contains(name, "/") {
			continue
		}
		advice := "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
		if strings.Contains(name, ".") {
			advice = "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"
		}
		out = append(out, fmt.Sprintf("metadata.finalizers: %q: %s", name, advice))
	}
	return out
}

// refuseAtEnd is a Strategy's CheckCreate: nothing is created while the definition ends.
func (f *family) refuseAtEnd(resource schema.GroupResource) func(string) error {
	return func(name string) error {
		if f.config.Ending() {
			return apierrors.NewForbidden(resource, name, errTerminating)
		}
		return nil
	}
}
