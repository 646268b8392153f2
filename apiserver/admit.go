package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
)

// prepare makes obj ready to be stored in place of old, which is nil when obj is created: admission completes it, the row's
// strategy and validation have their turn, and admission has the last word. What the server writes by itself is not admitted.
func (s *Server) prepare(ctx context.Context, t *target, obj, old runtime.Object, options writeOptions) error {
	if registry.AskerOf(ctx).Username == "" {
		return t.prepareWrite(ctx, obj, old)
	}
	request := t.admission(ctx, obj, old, options)
	if err := s.admission.Mutate(ctx, request); err != nil {
		return err
	}
	if err := s.mayGrant(ctx, t, obj, old); err != nil {
		return err
	}
	if err := t.prepareWrite(ctx, obj, old); err != nil {
		return err
	}
	return s.admission.Validate(ctx, request)
}

func (t *target) prepareWrite(ctx context.Context, obj, old runtime.Object) error {
	if old == nil {
		return t.prepareCreate(ctx, obj)
	}
	return t.prepareUpdate(ctx, obj, old)
}

// admission is a write as plugins see it.
func (t *target) admission(ctx context.Context, obj, old runtime.Object, options writeOptions) *admission.Request {
	operation := admission.Update
	if old == nil {
		operation = admission.Create
	}
	return &admission.Request{
		Operation: operation, Resource: t.resource.GroupVersionResource, Subresource: t.subName(),
		Namespace: t.namespace, Name: accessor(obj).GetName(),
		User: registry.AskerOf(ctx), DryRun: options.dryRun, Object: obj, Old: old,
		Warn: func(text string) { warn(ctx, text) },
	}
}

// lookup is the server's storage as plugins see it.
type lookup struct{ s *Server }

var _ admission.Objects = lookup{}

// Get implements admission.Objects.
func (l lookup) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	return l.s.find(ctx, resource, namespace, name)
}

// List implements admission.Objects. It is consistent: a LimitRange that was created a moment ago counts.
func (l lookup) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]runtime.Object, error) {
	list, err := l.s.storeOf(l.s.table.Lookup(resource)).List(ctx, storage.ListOptions{Selection: storage.Selection{Namespace: namespace}})
	if err != nil {
		return nil, err
	}
	out := make([]runtime.Object, len(list.Items))
	for i, item := range list.Items {
		out[i] = item.Object()
	}
	return out, nil
}
