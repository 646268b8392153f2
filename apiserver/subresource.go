package apiserver

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// serveProjection serves a subresource that shows a part of its parent as another kind: scale.
//
// Not yet: server-side apply on it.
func (s *Server) serveProjection(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, "", true)
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
	return writeObject(w, r, f, http.StatusOK, withKind(view, t.sub.Kind))
}

// projectedChange turns a PUT or PATCH of the view into a change of the parent.
func (s *Server) projectedChange(r *http.Request, t *target) (change, error) {
	var c change
	var edit func(ctx context.Context, parent runtime.Object) (view runtime.Object, err error)
	if t.verb == "patch" {
		p, err := s.readPatch(r, t)
		if err != nil {
			return c, err
		}
		if p.kind == types.ApplyYAMLPatchType {
			return c, errUnsupportedMediaType(patchTypes[:3])
		}
		c.options = p.options
		edit = func(ctx context.Context, parent runtime.Object) (runtime.Object, error) {
			view, err := t.sub.Project.Get(parent)
			if err != nil {
				return nil, err
			}
			return s.patched(ctx, t.sub.Kind, t.sub.New, p, view)
		}
	} else {
		var err error
		if c.options, err = updateOptions(r); err != nil {
			return c, err
		}
		view, err := s.decodeBody(r, t, t.sub.Kind, t.sub.New, c.options.validation)
		if err != nil {
			return c, err
		}
		c.uid = string(accessor(view).GetUID())
		edit = func(context.Context, runtime.Object) (runtime.Object, error) { return view, nil }
	}
	c.next = func(ctx context.Context, live runtime.Object) (runtime.Object, error) {
		view, err := edit(ctx, live)
		if err != nil {
			return nil, err
		}
		if err := t.checkName(accessor(view)); err != nil {
			return nil, err
		}
		next := live.DeepCopyObject()
		if err := t.sub.Project.Set(next, view); err != nil {
			return nil, err
		}
		accessor(next).SetResourceVersion(accessor(view).GetResourceVersion())
		return s.track(t, live, next, c.options.manager)
	}
	return c, nil
}

// serveCommand serves a subresource whose POST tells the parent to do something: binding, eviction.
func (s *Server) serveCommand(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, "", true)
	if err != nil {
		return err
	}
	options, err := createOptions(r)
	if err != nil {
		return err
	}
	body, err := s.decodeBody(r, t, t.sub.Kind, t.sub.New, options.validation)
	if err != nil {
		return err
	}
	m := accessor(body)
	if err := t.fitName(m); err != nil {
		return err
	}
	if err := t.fitNamespace(m); err != nil {
		return err
	}
	if err := s.command(r.Context(), t, body, options); err != nil {
		return err
	}
	return writeObject(w, r, f, http.StatusCreated, &metav1.Status{
		TypeMeta: statusTypeMeta, Status: metav1.StatusSuccess, Code: http.StatusCreated,
	})
}

// serveQuestion serves a subresource whose POST asks something about the parent: a token of a service account.
func (s *Server) serveQuestion(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, "", true)
	if err != nil {
		return err
	}
	options, err := createOptions(r)
	if err != nil {
		return err
	}
	body, err := s.decodeBody(r, t, t.sub.Kind, t.sub.New, options.validation)
	if err != nil {
		return err
	}
	m := accessor(body)
	if err := t.fitName(m); err != nil {
		return err
	}
	if err := t.fitNamespace(m); err != nil {
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
	_, err := t.store.Update(ctx, t.namespace, t.name, storage.UpdateOptions{DryRun: options.dryRun}, func(current *watch.Object) (runtime.Object, error) {
		obj := current.Object().DeepCopyObject()
		return obj, t.sub.Create(ctx, obj, body)
	})
	if err != nil || t.sub.DeleteOptions == nil {
		return t.storeError(err, t.name)
	}
	deletion := t.sub.DeleteOptions(body)
	if deletion == nil {
		deletion = &metav1.DeleteOptions{}
	}
	if options.dryRun {
		deletion.DryRun = []string{metav1.DryRunAll}
	}
	_, err = s.delete(ctx, t, deletion)
	return err
}
