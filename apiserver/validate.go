package apiserver

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kontiki/apiserver/registry"
)

func (t *target) invalid(name string, faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(t.judgedKind(), name, faults)
}

// judgedKind is the kind that faults are told of: that of the hub, as in Kubernetes, where an event of either group is an
// Event.
func (t *target) judgedKind() schema.GroupKind {
	if hub := t.resource.Hub; hub != nil {
		return hub.GroupVersionKind().GroupKind()
	}
	return t.resource.GroupVersionKind().GroupKind()
}

func (t *target) validateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	m := accessor(obj)
	faults := apivalidation.ValidateObjectMetaAccessor(m, t.resource.Namespaced, anyName, metadataPath)
	if len(faults) == 0 { // the two checks overlap
		faults = apivalidation.ValidateObjectMetaAccessorUpdate(m, accessor(old), metadataPath)
	}
	faults = append(faults, t.validateFinalizers(m)...)
	if t.sub != nil && t.sub.Validate != nil {
		return append(faults, t.sub.Validate(ctx, obj, old)...)
	}
	return append(faults, t.resource.Strategy.JudgeUpdate(ctx, obj, old)...)
}

// anyName leaves the name of an existing object in peace: rules may have become stricter since.
func anyName(string, bool) []string { return nil }

// validateFinalizers wants a domain in every finalizer that Kubernetes itself does not know, so that
// two controllers never mean different things by one name. Custom resources have others as often as they are unwise: their
// strategy warns of them.
func (t *target) validateFinalizers(m metav1.Object) (faults field.ErrorList) {
	if t.resource.Strategy.AnyFinalizer {
		return nil
	}
	for i, name := range m.GetFinalizers() {
		switch name {
		case "kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(name, "/") {
			faults = append(faults, field.Invalid(metadataPath.Child("finalizers").Index(i), name,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return faults
}

// validateNameOf returns how names of the row's objects are judged.
func validateNameOf(r *registry.Resource) apivalidation.ValidateNameFunc {
	if r.Strategy.ValidateName != nil {
		return r.Strategy.ValidateName
	}
	return apivalidation.NameIsDNSSubdomain
}
