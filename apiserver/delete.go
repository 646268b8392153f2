package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// serveDelete is DELETE on an object. Deletion may take several steps: a grace period that the
// object's owner in the cluster ends, and finalizers whose owners remove them. Until then the object
// stays with a deletionTimestamp.
func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, t.verb, t.binary())
	if err != nil {
		return err
	}
	options, err := s.deleteOptions(r)
	if err != nil {
		return err
	}
	t.warnOfDeletion(r.Context(), options)
	result, err := s.delete(r.Context(), t, options, s.judgeDeletion(r.Context(), t, options))
	if err != nil {
		return err
	}
	code := http.StatusOK
	if !result.Deleted && options.OrphanDependents != nil && !*options.OrphanDependents { //nolint:staticcheck // old clients send it
		code = http.StatusAccepted
	}
	if result.Deleted && !t.resource.Strategy.ReturnDeleted {
		return writeObject(w, r, f, code, t.deletedStatus(result.Object.Object()))
	}
	return s.writeResult(w, r, t, f, code, result.Object)
}

// warnOfDeletion tells a client that leaves it open what becomes of dependents.
func (t *target) warnOfDeletion(ctx context.Context, options *metav1.DeleteOptions) {
	if options.PropagationPolicy == nil && options.OrphanDependents == nil { //nolint:staticcheck // old clients send it
		warn(ctx, t.resource.Strategy.DeleteWarning)
	}
}

// deletedStatus tells the client exactly which object is gone. (The kind it names is the resource:
// so does Kubernetes.)
func (t *target) deletedStatus(obj runtime.Object) *metav1.Status {
	m := accessor(obj)
	return &metav1.Status{
		TypeMeta: statusTypeMeta,
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: m.GetName(), Group: t.resource.Group, Kind: t.resource.Resource, UID: m.GetUID()},
	}
}

// deleteOptions come in the body, or in the query if there is none.
func (s *Server) deleteOptions(r *http.Request) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		if err := parseQuery(r, options); err != nil {
			return nil, err
		}
	} else if err := s.decodeDeleteOptions(r, body, options); err != nil {
		return nil, err
	}
	options.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	return options, invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(options))
}

// decodeDeleteOptions accepts DeleteOptions in any group and version, since old clients send those
// of the resource.
func (s *Server) decodeDeleteOptions(r *http.Request, body []byte, into *metav1.DeleteOptions) error {
	info, err := serializerFor(s.codecs, r.Header.Get("Content-Type"), true)
	if err != nil {
		return err
	}
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	obj, sent, err := info.Serializer.Decode(body, &kind, into)
	if err != nil {
		return badRequest("%v", err)
	}
	if obj != runtime.Object(into) {
		return badRequest("decoded object cannot be converted to DeleteOptions")
	}
	auditBody(r.Context(), obj, *sent)
	return nil
}

// delete takes one step of a deletion, perhaps the last. What has a grace period is marked before it goes, even if the
// period is zero, so that watchers see when its deletion began (as in Kubernetes).
// judge may refuse the deletion of the object as it is; nil does not.
func (s *Server) delete(ctx context.Context, t *target, options *metav1.DeleteOptions, judge func(runtime.Object) error) (storage.Result, error) {
	result, err := s.deleteStep(ctx, t, options, judge)
	if err != nil || result.Deleted || len(options.DryRun) > 0 || !t.over(result.Object.Object()) {
		return result, err
	}
	uid := accessor(result.Object.Object()).GetUID()
	last, err := s.deleteStep(ctx, t, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}, nil)
	if apierrors.IsNotFound(err) {
		return result, nil // somebody else was as fast
	}
	return last, err
}

// over says whether obj is marked as being deleted and nothing holds it any more.
func (t *target) over(obj runtime.Object) bool {
	m := accessor(obj)
	return t.resource.Strategy.GracePeriod != nil && m.GetDeletionTimestamp() != nil && graceLeft(m) == 0 && len(m.GetFinalizers()) == 0
}

func (s *Server) deleteStep(ctx context.Context, t *target, options *metav1.DeleteOptions, judge func(runtime.Object) error) (storage.Result, error) {
	update := storage.UpdateOptions{DryRun: len(options.DryRun) > 0}
	if p := options.Preconditions; p != nil {
		if p.UID != nil {
			update.UID = string(*p.UID)
		}
		if p.ResourceVersion != nil {
			update.ResourceVersion = *p.ResourceVersion
		}
	}
	result, err := t.store.Update(ctx, t.namespace, t.name, update, func(current *watch.Object) (runtime.Object, error) {
		if judge != nil {
			if err := judge(current.Object()); err != nil {
				return nil, err
			}
		}
		obj := current.Object().DeepCopyObject()
		if done := t.stepDeletion(obj, options, time.Now()); done {
			return nil, nil
		}
		return obj, nil
	})
	var precondition *storage.PreconditionError
	if errors.As(err, &precondition) {
		return result, t.deletionConflict(precondition)
	}
	return result, t.storeError(err, t.name)
}

// deletionConflict is worded as Kubernetes words it: by the kind, not the resource.
func (t *target) deletionConflict(p *storage.PreconditionError) error {
	kind := t.judgedKind()
	gr := schema.GroupResource{Group: kind.Group, Resource: kind.Kind}
	happened := "modified"
	if p.Field == "UID" {
		happened = "deleted and then recreated"
	}
	return apierrors.NewConflict(gr, t.name, fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). "+
		"The object might have been %s", p.Field, p.Want, p.Field, p.Got, happened))
}
