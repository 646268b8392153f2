package apiserver

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// serveUpdate is PUT on an object, or on a subresource that is a part of it.
func (s *Server) serveUpdate(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, t.verb, t.binary())
	if err != nil {
		return err
	}
	options, err := updateOptions(r)
	if err != nil {
		return err
	}
	wanted, err := s.decodeBody(r, t, t.resource.GroupVersionKind(), t.resource.New, options.validation)
	if err != nil {
		return err
	}
	m := accessor(wanted)
	if err := t.checkName(m); err != nil {
		return err
	}
	if err := t.fitNamespace(m); err != nil {
		return err
	}
	result, err := s.change(r.Context(), t, change{
		options:      options,
		uid:          string(m.GetUID()),
		from:         m.GetResourceVersion(),
		allowMissing: t.sub == nil && t.resource.Strategy.AllowCreateOnUpdate,
		next: func(_ context.Context, live runtime.Object) (runtime.Object, error) {
			if !sameRevision(m, live) { // before the work, for those who fight over one object
				return nil, t.conflict(optimisticLockMessage)
			}
			return s.track(t, live, wanted.DeepCopyObject(), options.manager)
		},
	})
	if err != nil {
		return err
	}
	return s.writeResult(w, r, t, f, codeOf(result), result.Object)
}

func codeOf(result storage.Result) int {
	if result.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// A change is what update, patch and apply have in common: a function from the present object to the
// next one, run again whenever somebody else was faster.
type change struct {
	options      writeOptions
	uid          string // if set, must be the present object's
	from         string // if set, the resourceVersion that the change is meant for
	allowMissing bool   // create the object if there is none
	// next makes the next version of live, which is a private copy, or an empty object if there is
	// none yet. It has put the owners of the changed fields into managedFields.
	next func(ctx context.Context, live runtime.Object) (runtime.Object, error)
}

// change runs a change through the row's strategy and into the store.
func (s *Server) change(ctx context.Context, t *target, c change) (storage.Result, error) {
	beside := &besides{s: s}
	defer beside.end()
	result, err := t.store.Update(ctx, t.namespace, t.name, storage.UpdateOptions{
		UID:           c.uid,
		From:          c.from,
		CreateMissing: c.allowMissing,
		DryRun:        c.options.dryRun,
		Beside:        beside.written,
	}, func(current *watch.Object) (runtime.Object, error) {
		beside.end() // of an attempt before this one: nothing is held while admission asks webhooks
		if current == nil {
			return s.createByChange(ctx, t, c, beside)
		}
		return s.changeExisting(ctx, t, c, current.Object(), beside)
	})
	return result, t.storeError(err, t.name)
}

func (s *Server) createByChange(ctx context.Context, t *target, c change, beside *besides) (runtime.Object, error) {
	obj, err := c.next(ctx, t.resource.New())
	if err != nil {
		return nil, err
	}
	m := accessor(obj)
	if m.GetUID() != "" {
		return nil, t.conflict("Precondition failed: UID in precondition: " + string(m.GetUID()) + ", UID in object meta: ")
	}
	if err := t.fitName(m); err != nil {
		return nil, err
	}
	if err := t.fitNamespace(m); err != nil {
		return nil, err
	}
	return obj, s.prepare(ctx, t, obj, nil, c.options, beside)
}

func (s *Server) changeExisting(ctx context.Context, t *target, c change, old runtime.Object, beside *besides) (runtime.Object, error) {
	obj, err := c.next(ctx, old.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	m := accessor(obj)
	if err := t.checkName(m); err != nil {
		return nil, err
	}
	if err := t.checkConditional(m); err != nil {
		return nil, err
	}
	if !sameRevision(m, old) {
		return nil, t.conflict(optimisticLockMessage)
	}
	if err := s.prepare(ctx, t, obj, old, c.options, beside); err != nil {
		return nil, err
	}
	if t.finished(obj, old) {
		return nil, nil // delete
	}
	return obj, nil
}

// sameRevision says whether an object is of the live one's resourceVersion, or of none in particular.
func sameRevision(m metav1.Object, live runtime.Object) bool {
	rv := m.GetResourceVersion()
	return rv == "" || rv == "0" || rv == accessor(live).GetResourceVersion()
}

// checkConditional: without a resourceVersion, and with "0", an update is unconditional, which some kinds refuse.
// The status names the resource where others name the kind, as in Kubernetes, whose storage makes it.
func (t *target) checkConditional(m metav1.Object) error {
	rv := m.GetResourceVersion()
	if !t.resource.Strategy.NeedsResourceVersion || rv != "" && rv != "0" {
		return nil
	}
	resource := t.resource.GroupVersionResource
	return apierrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: resource.Resource}, t.name,
		field.ErrorList{field.Invalid(metadataPath.Child("resourceVersion"), 0, "must be specified for an update")})
}

func (t *target) conflict(message string) error {
	return apierrors.NewConflict(t.groupResource(), t.name, errors.New(message))
}

// track notes in next.metadata.managedFields what the manager changes from live to next (ownership.Tracker.Update).
func (s *Server) track(t *target, live, next runtime.Object, manager string) (runtime.Object, error) {
	return s.owners.Update(t.resource, t.subName(), live, next, manager)
}
