package apiserver

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"

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
	result, err := s.delete(r.Context(), t, options)
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
	obj, _, err := info.Serializer.Decode(body, &kind, into)
	if err != nil {
		return badRequest("%v", err)
	}
	if obj != runtime.Object(into) {
		return badRequest("decoded object cannot be converted to DeleteOptions")
	}
	return nil
}

// delete takes one step of a deletion, perhaps the last.
func (s *Server) delete(ctx context.Context, t *target, options *metav1.DeleteOptions) (storage.Result, error) {
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
		obj := current.Object().DeepCopyObject()
		if check := t.resource.Strategy.CheckDelete; check != nil {
			if err := check(obj); err != nil {
				return nil, err
			}
		}
		if done := t.stepDeletion(obj, options, time.Now()); done {
			return nil, nil
		}
		return obj, nil
	})
	return result, t.storeError(err, t.name)
}

// stepDeletion changes obj as a request to delete it at that moment demands, and reports whether
// nothing holds it any more.
func (t *target) stepDeletion(obj runtime.Object, options *metav1.DeleteOptions, now time.Time) (done bool) {
	m := accessor(obj)
	strategy := &t.resource.Strategy
	begun := m.GetDeletionTimestamp() != nil
	if begun && !t.shorten(obj, options, now) {
		return false // it is being deleted already, and no faster than before
	}
	m.SetFinalizers(cascadeFinalizers(m.GetFinalizers(), options))
	grace := graceLeft(m)
	if !begun && strategy.GracePeriod != nil {
		grace = strategy.GracePeriod(obj, askedGrace(options))
	}
	kept := strategy.KeepOnDelete != nil && strategy.KeepOnDelete(obj)
	if grace == 0 && len(m.GetFinalizers()) == 0 && !kept {
		return true
	}
	if !begun {
		markDeleting(m, grace, now)
		if strategy.PrepareForDelete != nil {
			strategy.PrepareForDelete(obj)
		}
	}
	return false
}

// shorten brings the end of a running grace period forward. It can only get earlier, and not earlier
// than now. It reports whether there is anything left to do in this step.
func (t *target) shorten(obj runtime.Object, options *metav1.DeleteOptions, now time.Time) bool {
	m := accessor(obj)
	left := graceLeft(m)
	if left == 0 {
		return true
	}
	asked := askedGrace(options)
	if asked == nil || *asked >= left {
		return false
	}
	grace := *asked
	end := m.GetDeletionTimestamp().Add(time.Duration(grace-left) * time.Second)
	if end.Before(now) {
		end = now
		if grace != 0 {
			grace = 1 // still graceful: the node agent ends it
		}
	}
	m.SetDeletionTimestamp(&metav1.Time{Time: end.UTC().Truncate(time.Second)})
	m.SetDeletionGracePeriodSeconds(&grace)
	return true
}

func graceLeft(m metav1.Object) int64 {
	if grace := m.GetDeletionGracePeriodSeconds(); grace != nil {
		return *grace
	}
	return 0
}

// askedGrace is the client's wish; below zero means one second, as in Kubernetes.
func askedGrace(options *metav1.DeleteOptions) *int64 {
	asked := options.GracePeriodSeconds
	if asked != nil && *asked < 0 {
		one := int64(1)
		return &one
	}
	return asked
}

func markDeleting(m metav1.Object, grace int64, now time.Time) {
	m.SetDeletionTimestamp(&metav1.Time{Time: now.Add(time.Duration(grace) * time.Second).UTC().Truncate(time.Second)})
	m.SetDeletionGracePeriodSeconds(&grace)
	if m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
}

// cascadeFinalizers turns the propagation policy into the finalizers that the garbage collector
// works off: "orphan" or "foregroundDeletion", or neither for background deletion.
func cascadeFinalizers(present []string, options *metav1.DeleteOptions) []string {
	want := ""
	switch {
	case options.OrphanDependents != nil: //nolint:staticcheck // old clients send it
		if *options.OrphanDependents { //nolint:staticcheck // as above
			want = metav1.FinalizerOrphanDependents
		}
	case options.PropagationPolicy == nil:
		return present // finalizers that say so already have their way
	case *options.PropagationPolicy == metav1.DeletePropagationOrphan:
		want = metav1.FinalizerOrphanDependents
	case *options.PropagationPolicy == metav1.DeletePropagationForeground:
		want = metav1.FinalizerDeleteDependents
	}
	var out []string
	for _, f := range present {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			out = append(out, f)
		}
	}
	if want != "" {
		out = append(out, want)
	}
	return out
}

// deletePageSize is how many objects deletecollection reads at a time.
const deletePageSize = 500

// deleteWorkers is how many objects a deletecollection deletes at the same time.
const deleteWorkers = 16

// serveDeleteCollection is DELETE on a collection: every object that the selectors see is deleted as
// if it had been named, and the answer lists them. It stops soon after the first error.
func (s *Server) serveDeleteCollection(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, "list", t.binary())
	if err != nil {
		return err
	}
	list, err := listOptions(r, t)
	if err != nil {
		return err
	}
	options, err := s.deleteOptions(r)
	if err != nil {
		return err
	}
	query := storage.ListOptions{
		Selection: selection(t, list), ResourceVersion: list.ResourceVersion, ResourceVersionMatch: list.ResourceVersionMatch,
		Limit: list.Limit, Continue: list.Continue,
	}
	if query.Limit == 0 {
		query.Limit = deletePageSize
	}
	deleted := &storage.List{}
	for {
		page, err := t.store.List(r.Context(), query)
		if err != nil {
			return t.storeError(err, "")
		}
		if err := s.deletePage(r.Context(), t, page.Items, options); err != nil {
			return err
		}
		deleted.Items, deleted.Revision = append(deleted.Items, page.Items...), page.Revision
		if page.Continue == "" || list.Limit > 0 {
			return s.writeList(w, r, t, f, deleted)
		}
		query.Continue, query.ResourceVersion, query.ResourceVersionMatch = page.Continue, "", ""
	}
}

// deletePage deletes several at a time: each waits for its own raft entry to be on disk, and entries that wait together are
// written together.
func (s *Server) deletePage(ctx context.Context, t *target, page []*watch.Object, options *metav1.DeleteOptions) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deleteWorkers)
	for _, obj := range page {
		group.Go(func() (err error) {
			defer s.recoverInto(&err)
			return s.deleteListed(ctx, t, obj, options)
		})
	}
	return group.Wait()
}

// deleteListed deletes one of a collection. Somebody else may have done so since the list.
func (s *Server) deleteListed(ctx context.Context, t *target, obj *watch.Object, options *metav1.DeleteOptions) error {
	one := *t
	m := accessor(obj.Object())
	one.namespace, one.name = m.GetNamespace(), m.GetName()
	_, err := s.delete(ctx, &one, options.DeepCopy())
	if apierrors.IsNotFound(err) || errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
