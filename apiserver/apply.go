package apiserver

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apply merges an applied configuration into live, an empty object if there is none yet, and
// returns the result, with conflicts as a 409 that names every field and its owner.
func (s *Server) apply(ctx context.Context, t *target, p patch, live runtime.Object) (runtime.Object, error) {
	applied, err := t.decodeApplied(ctx, p, t.resource.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	next, err := s.owners.Apply(t.resource, t.subName(), live, applied, p.options.manager, p.options.force)
	if err != nil {
		return nil, applyError(t.resource.GroupVersionKind(), err)
	}
	if _, err := unknownFields(t.resource, next); err != nil { // there are none: the schema would have refused them
		return nil, badRequest("%v", err)
	}
	t.resource.Default(next)
	return next, nil
}

// applyView merges an applied configuration into a view of the target.
func (s *Server) applyView(ctx context.Context, t *target, p patch, view runtime.Object) (runtime.Object, error) {
	applied, err := t.decodeApplied(ctx, p, t.sub.Kind)
	if err != nil {
		return nil, err
	}
	next, err := s.owners.ApplyView(t.sub, view, applied, p.options.manager, p.options.force)
	if err != nil {
		return nil, applyError(t.sub.Kind, err)
	}
	return next, nil
}

// decodeApplied reads an applied configuration of a kind.
func (t *target) decodeApplied(ctx context.Context, p patch, want schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	applied := &unstructured.Unstructured{}
	var fault, err error
	if applied.Object, fault, err = decodeManifest(p.body); err != nil {
		return nil, badRequest("error decoding patch: %v", err)
	}
	if err := t.checkApplied(applied, want); err != nil {
		return nil, err
	}
	if fault != nil && p.options.validation != metav1.FieldValidationIgnore {
		if p.options.validation == metav1.FieldValidationStrict {
			return nil, badRequest("error strict decoding YAML: %v", fault)
		}
		warnFaults(ctx, []error{fault})
	}
	return applied, nil
}

// checkApplied refuses a configuration for something else than the target.
func (t *target) checkApplied(applied *unstructured.Unstructured, want schema.GroupVersionKind) error {
	if applied.Object == nil {
		return badRequest("the applied configuration is not an object")
	}
	if found := applied.GroupVersionKind(); found != want {
		return badRequest("the applied configuration is a %s in version %q, not a %s in version %q",
			found.Kind, found.GroupVersion(), want.Kind, want.GroupVersion())
	}
	metadata, found, err := unstructured.NestedMap(applied.Object, "metadata")
	if err != nil {
		return badRequest("metadata of the applied configuration: %v", err)
	}
	if !found || metadata == nil {
		applied.Object["metadata"] = map[string]any{}
	}
	return t.fitName(applied)
}

// applyError passes what the field manager words for the client. Anything else that it says is about
// a configuration that does not fit the schema: the wrong type, or a field that does not exist.
func applyError(kind schema.GroupVersionKind, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	text := err.Error()
	if before, _, quotes := strings.Cut(text, ", got "); quotes && isConfidential(kind) {
		text = before
	}
	return badRequest("%s", text)
}
