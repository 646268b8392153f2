package apiserver

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kontiki/apiserver/ownership"
	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// serveProjection serves a subresource that shows a part of its parent as another kind: scale.
func (s *Server) serveProjection(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, t.verb, true)
	if err != nil {
		return err
	}
	if t.verb == "get" {
		obj, err := s.read(r, t)
		if err != nil {
			return err
		}
		return t.writeView(w, r, f, obj)
	}
	c, err := s.projectedChange(r, t)
	if err != nil {
		return err
	}
	result, err := s.change(r.Context(), t, c)
	if err != nil {
		return err
	}
	return t.writeView(w, r, f, result.Object)
}

func (t *target) writeView(w http.ResponseWriter, r *http.Request, f form, parent *watch.Object) error {
	view, err := t.sub.Project.Get(parent.Object())
	if err != nil {
		return err
	}
	switch f.as {
	case asObject:
	case asTable:
		return writeRows(w, r, &target{resource: t.sub.Project.Row}, f, http.StatusOK, metav1.ListMeta{ResourceVersion: accessor(view).GetResourceVersion()}, []runtime.Object{view})
	default:
		return errNoSuchForm(mediaTypes())
	}
	return writeObject(w, r, f, http.StatusOK, withKind(view, t.sub.Kind))
}

// A viewEdit makes of a view of the live parent the one that a request wants, with who owns what in it. It may change its
// argument, and is called again when the parent has changed meanwhile.
type viewEdit func(ctx context.Context, view runtime.Object) (runtime.Object, error)

// projectedChange turns a PUT or PATCH of the view into a change of the parent.
func (s *Server) projectedChange(r *http.Request, t *target) (change, error) {
	var c change
	var edit viewEdit
	var err error
	if t.verb == "patch" {
		var p patch
		if p, err = s.readPatch(r, t); err != nil {
			return c, err
		}
		c.options, edit = p.options, s.patchView(t, p)
	} else {
		if c.options, err = updateOptions(r); err != nil {
			return c, err
		}
		body, err := s.decodeBody(r, t, t.sub.Kind, t.sub.New, c.options.validation)
		if err != nil {
			return c, err
		}
		c.uid = string(accessor(body).GetUID())
		manager := c.options.manager
		edit = func(_ context.Context, view runtime.Object) (runtime.Object, error) {
			return s.owners.UpdateView(t.sub, view, withKind(body, t.sub.Kind), manager)
		}
	}
	c.next = func(ctx context.Context, live runtime.Object) (runtime.Object, error) {
		return s.throughView(ctx, t, live, edit, c.options)
	}
	return c, nil
}

// patchView is the edit of a patch.
func (s *Server) patchView(t *target, p patch) viewEdit {
	if p.kind == types.ApplyYAMLPatchType {
		return func(ctx context.Context, view runtime.Object) (runtime.Object, error) {
			return s.applyView(ctx, t, p, view)
		}
	}
	return func(ctx context.Context, view runtime.Object) (runtime.Object, error) {
		next, err := s.patched(ctx, t.sub.Kind, t.sub.New, p, view.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		return s.owners.UpdateView(t.sub, view, withKind(next, t.sub.Kind), p.options.manager)
	}
}

// throughView changes the parent by an edit of its view. The owners of what the view shows move with it. Admission
// mutates the view; its validators see what becomes of it (prepare).
func (s *Server) throughView(ctx context.Context, t *target, live runtime.Object, edit viewEdit, options writeOptions) (runtime.Object, error) {
	before, err := t.sub.Project.Get(live)
	if err != nil {
		return nil, err
	}
	owners := ownership.ViewOwners(t.resource, t.sub, live)
	entries, err := owners.ToSubresource()
	if err != nil {
		return nil, err
	}
	accessor(before).SetManagedFields(entries)
	view, err := edit(ctx, withKind(before, t.sub.Kind))
	if err != nil {
		return nil, err
	}
	if err := t.checkName(accessor(view)); err != nil {
		return nil, err
	}
	if err := s.mutate(ctx, t.admission(ctx, view, before, options)); err != nil {
		return nil, err
	}
	next := live.DeepCopyObject()
	if err := t.sub.Project.Set(next, view); err != nil {
		return nil, err
	}
	if entries, err = owners.ToParent(accessor(view).GetManagedFields()); err != nil {
		return nil, err
	}
	if rv := accessor(view).GetResourceVersion(); rv != "" && rv != "0" { // else any will do, also for kinds that want one themselves
		accessor(next).SetResourceVersion(rv)
	}
	accessor(next).SetManagedFields(entries)
	return next, nil
}

// serveCommand serves a subresource whose POST tells the parent to do something: binding, eviction.
func (s *Server) serveCommand(w http.ResponseWriter, r *http.Request, t *target) error {
	f, body, options, err := s.readPosted(r, t)
	if err != nil {
		return err
	}
	if err := s.command(r.Context(), t, body, options); err != nil {
		return err
	}
	return writeObject(w, r, f, http.StatusCreated, &metav1.Status{
		TypeMeta: statusTypeMeta, Status: metav1.StatusSuccess, Code: http.StatusCreated,
	})
}

// readPosted reads the body of a POST to a subresource, which is admitted, and how it is to be answered.
func (s *Server) readPosted(r *http.Request, t *target) (f form, body runtime.Object, options writeOptions, err error) {
	if f, err = negotiate(r, "", true); err != nil {
		return f, nil, options, err
	}
	if options, err = createOptions(r); err != nil {
		return f, nil, options, err
	}
	if body, err = s.decodeBody(r, t, t.sub.Kind, t.sub.New, options.validation); err != nil {
		return f, nil, options, err
	}
	if err = t.fitPosted(accessor(body)); err == nil {
		err = t.fitNamespace(accessor(body))
	}
	if err == nil {
		err = s.admitPosted(r.Context(), t, body, options)
	}
	return f, body, options, err
}

// fitPosted refuses what is posted under another name. A command must say whom it is for; a question may leave it out.
func (t *target) fitPosted(body metav1.Object) error {
	switch {
	case body.GetName() == t.name:
		return nil
	case t.sub.Create != nil:
		return badRequest("name in URL does not match name in %s object", t.sub.Kind.Kind)
	case body.GetName() == "":
		body.SetName(t.name)
		return nil
	}
	fault := field.Invalid(metadataPath.Child("name"), body.GetName(), "must match the service account name if specified")
	return apierrors.NewInvalid(t.sub.Kind.GroupKind(), t.name, field.ErrorList{fault})
}

// serveQuestion serves a subresource whose POST asks something about the parent: a token of a service account.
func (s *Server) serveQuestion(w http.ResponseWriter, r *http.Request, t *target) error {
	f, body, _, err := s.readPosted(r, t)
	if err != nil {
		return err
	}
	parent, err := s.find(r.Context(), t.resource.GroupVersionResource, t.namespace, t.name)
	if err != nil {
		return err
	}
	answer, err := t.sub.Answer(r.Context(), answering{s}, parent, body)
	if err != nil {
		return err
	}
	return writeObject(w, r, f, http.StatusCreated, withKind(answer, t.sub.Kind))
}

func (s *Server) command(ctx context.Context, t *target, body runtime.Object, options writeOptions) error {
	told, err := t.store.Update(ctx, t.namespace, t.name, storage.UpdateOptions{DryRun: options.dryRun}, func(current *watch.Object) (runtime.Object, error) {
		obj := current.Object().DeepCopyObject()
		return obj, t.sub.Create(ctx, obj, body)
	})
	if err != nil || t.sub.DeleteOptions == nil {
		return t.storeError(err, t.name)
	}
	pod := told.Object.Object().(*corev1.Pod) // only pods are evicted
	if err := s.spendDisruption(ctx, pod, options); err != nil {
		return err
	}
	deletion := t.sub.DeleteOptions(body)
	if deletion == nil {
		deletion = &metav1.DeleteOptions{}
	}
	if err := invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(deletion)); err != nil {
		return err
	}
	if options.dryRun {
		deletion.DryRun = []string{metav1.DryRunAll}
	}
	_, err = s.delete(ctx, t, deletion, nil) // it was judged as what was posted
	return err
}
