package apiserver

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kontiki/apiserver/ownership"
)

var metadataPath = field.NewPath("metadata")

// subName is the name of the target's subresource, or empty.
func (t *target) subName() string {
	if t.sub == nil {
		return ""
	}
	return t.sub.Name
}

// accessor returns obj's metadata. Every object of the API has it.
func accessor(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(fmt.Sprintf("%T is in the resource table but has no metadata: %v", obj, err))
	}
	return m
}

// fitNamespace gives an object without a namespace that of the request, and refuses another one.
func (t *target) fitNamespace(obj metav1.Object) error {
	switch {
	case obj.GetNamespace() == t.namespace:
	case obj.GetNamespace() == "":
		obj.SetNamespace(t.namespace)
	case t.namespace == "":
		obj.SetNamespace("") // a cluster-scoped object that says otherwise is forgiven, as in Kubernetes
	default:
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// fitName gives an object without a name that of the URL, and refuses another one.
func (t *target) fitName(obj metav1.Object) error {
	if obj.GetName() == "" {
		obj.SetName(t.name)
	}
	return t.checkName(obj)
}

// checkName refuses an object without a name, or with another one than that of the URL: what is written as a whole must
// say what it is.
func (t *target) checkName(obj metav1.Object) error {
	switch obj.GetName() {
	case t.name:
	case "":
		return badRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", t.name)
	default:
		return badRequest("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), t.name)
	}
	return nil
}

// prepareCreate makes a decoded object ready to be stored: what the server alone decides is set,
// then the row's strategy has its turn, then everything is validated.
func (t *target) prepareCreate(ctx context.Context, obj runtime.Object) error {
	m := accessor(obj)
	if err := t.fitNamespace(m); err != nil {
		return err
	}
	strategy := &t.resource.Strategy
	if strategy.CheckCreate != nil {
		if err := strategy.CheckCreate(m.GetName()); err != nil {
			return err
		}
	}
	m.SetUID(types.UID(uuid.NewString()))
	m.SetCreationTimestamp(metav1.Time{Time: time.Now().UTC().Truncate(time.Second)})
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
	m.SetResourceVersion("")
	if !strategy.NoGeneration {
		m.SetGeneration(1)
	}
	if t.resource.Subresource("status") != nil && !strategy.KeepStatusOnCreate {
		copyStatus(obj, nil)
	}
	if strategy.PrepareForCreate != nil {
		strategy.PrepareForCreate(ctx, obj)
	}
	faults := apivalidation.ValidateObjectMetaAccessor(m, t.resource.Namespaced, validateNameOf(t.resource), metadataPath)
	faults = append(faults, t.validateFinalizers(m)...)
	if strategy.Validate != nil {
		faults = append(faults, strategy.Validate(ctx, obj)...)
	}
	if err := t.invalid(m.GetName(), faults); err != nil {
		return err
	}
	if strategy.Warnings != nil {
		warn(ctx, strategy.Warnings(ctx, obj, nil)...)
	}
	return nil
}

// prepareUpdate makes obj, which a request wants in place of old, ready to be stored.
func (t *target) prepareUpdate(ctx context.Context, obj, old runtime.Object) error {
	m, oldMeta := accessor(obj), accessor(old)
	if err := t.fitNamespace(m); err != nil {
		return err
	}
	strategy := &t.resource.Strategy
	m.SetGeneration(oldMeta.GetGeneration())
	switch {
	case t.sub != nil && t.sub.Update != nil:
		t.sub.Update(ctx, obj, old)
	case t.sub == nil:
		if t.resource.Subresource("status") != nil {
			copyStatus(obj, old)
		}
		if strategy.PrepareForUpdate != nil {
			strategy.PrepareForUpdate(ctx, obj, old)
		}
	}
	if !strategy.NoGeneration && !sameWish(obj, old) {
		m.SetGeneration(oldMeta.GetGeneration() + 1)
	}
	keepServerMetadata(m, oldMeta)
	if err := t.invalid(m.GetName(), t.validateUpdate(ctx, obj, old)); err != nil {
		return err
	}
	if strategy.Warnings != nil && t.sub == nil {
		warn(ctx, strategy.Warnings(ctx, obj, old)...)
	}
	ownership.KeepTimestamps(obj, old)
	return nil
}

// keepServerMetadata restores what an update may leave out but not change.
func keepServerMetadata(m, old metav1.Object) {
	if m.GetUID() == "" {
		m.SetUID(old.GetUID())
	}
	m.SetCreationTimestamp(old.GetCreationTimestamp())
	m.SetSelfLink("")
	m.SetResourceVersion(old.GetResourceVersion()) // compared before; the store sets the new one
	if old.GetDeletionTimestamp() != nil {
		m.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if m.GetDeletionGracePeriodSeconds() == nil {
		m.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
}

// finished says whether an update removed the last thing that kept an object alive whose deletion
// had been asked for: then it is deleted instead of written.
func (t *target) finished(obj, old runtime.Object) bool {
	was := accessor(old)
	if was.GetDeletionTimestamp() == nil || len(accessor(obj).GetFinalizers()) > 0 {
		return false
	}
	if grace := was.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		return false
	}
	keep := t.resource.Strategy.KeepOnDelete
	return keep == nil || !keep(obj)
}
