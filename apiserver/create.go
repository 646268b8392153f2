package apiserver

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// serveCreate is POST on a collection.
func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, t.verb, t.binary())
	if err != nil {
		return err
	}
	options, err := createOptions(r)
	if err != nil {
		return err
	}
	obj, err := s.decodeBody(r, t, t.resource.GroupVersionKind(), t.resource.New, options.validation)
	if err != nil {
		return err
	}
	m := accessor(obj)
	if rv := m.GetResourceVersion(); rv != "" && rv != "0" {
		return badRequest("resourceVersion should not be set on objects to be created")
	}
	wipeServerMetadata(m)
	if err := t.fitNamespace(m); err != nil {
		return err
	}
	created, err := s.createNamed(r.Context(), t, obj, options)
	if err != nil {
		return err
	}
	return s.writeResult(w, r, t, f, http.StatusCreated, created)
}

// wipeServerMetadata drops what a client cannot set, so that nobody comes to own it either.
func wipeServerMetadata(m metav1.Object) {
	m.SetUID("")
	m.SetCreationTimestamp(metav1.Time{})
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
}

// createNamed creates obj under its name, or under generated ones until one is free.
func (s *Server) createNamed(ctx context.Context, t *target, obj runtime.Object, options writeOptions) (*watch.Object, error) {
	m := accessor(obj)
	wish := m.GetGenerateName()
	if wish == "" || m.GetName() != "" {
		return s.create(ctx, t, obj, options)
	}
	generate := generateName
	if own := t.resource.Strategy.GenerateName; own != nil {
		generate = own
	}
	for attempt := 1; ; attempt++ {
		try := obj.DeepCopyObject()
		name := generate(wish)
		accessor(try).SetName(name)
		created, err := s.create(ctx, t, try, options)
		if !apierrors.IsAlreadyExists(err) {
			return created, err
		}
		if attempt == generateNameAttempts {
			return nil, apierrors.NewGenerateNameConflict(t.groupResource(), name, 1)
		}
	}
}

// create is the whole of creating an object whose name is decided.
func (s *Server) create(ctx context.Context, t *target, obj runtime.Object, options writeOptions) (*watch.Object, error) {
	obj, err := s.owners.Create(t.resource, obj, options.manager)
	if err != nil {
		return nil, err
	}
	beside := &besides{s: s}
	defer beside.end()
	if err := s.prepare(ctx, t, obj, nil, options, beside); err != nil {
		return nil, err
	}
	created, err := t.store.Create(ctx, obj, storage.CreateOptions{DryRun: options.dryRun, Beside: beside.written()})
	for errors.Is(err, storage.ErrBeside) {
		if err := beside.again(ctx); err != nil {
			return nil, err
		}
		created, err = t.store.Create(ctx, obj, storage.CreateOptions{Beside: beside.written()})
	}
	if errors.Is(err, storage.ErrExists) {
		return nil, s.alreadyExists(ctx, t, accessor(obj))
	}
	return created, t.storeError(err, accessor(obj).GetName())
}

// alreadyExists tells a client that has only to wait from one that has to choose another name.
func (s *Server) alreadyExists(ctx context.Context, t *target, m metav1.Object) error {
	refused := apierrors.NewAlreadyExists(t.groupResource(), m.GetName())
	found, err := s.find(ctx, t.resource.GroupVersionResource, m.GetNamespace(), m.GetName())
	if err == nil && accessor(found).GetDeletionTimestamp() != nil {
		refused.ErrStatus.Message = "object is being deleted: " + refused.ErrStatus.Message
	}
	return refused
}
