package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Controller references: an object has at most one owner reference with controller=true, and only that owner manages it.
// A selector alone does not make an object ours; it makes an orphan adoptable. See
// https://github.com/kubernetes/design-proposals-archive/blob/main/api-machinery/controller-ref.md

// claimer sorts objects into ours and others', adopting orphans that match the selector and releasing what no longer does.
type claimer[T metav1.Object] struct {
	owner    metav1.Object
	kind     schema.GroupVersionKind
	selector labels.Selector
	// reread returns the owner as the server has it now. A stale owner (deleted, or replaced by another of the same name)
	// must not adopt.
	reread func(context.Context) (metav1.Object, error)
	// patch applies a strategic merge patch to an object.
	patch func(ctx context.Context, obj T, patch []byte) error
}

// claim returns the objects that belong to the owner after adoptions and releases.
func (c claimer[T]) claim(ctx context.Context, candidates []T) ([]T, error) {
	mayAdopt := sync.OnceValue(func() error { return c.mayAdopt(ctx) })
	var ours []T
	for _, obj := range candidates {
		mine, err := c.claimOne(ctx, obj, mayAdopt)
		if err != nil {
			return nil, err
		}
		if mine {
			ours = append(ours, obj)
		}
	}
	return ours, nil
}

func (c claimer[T]) claimOne(ctx context.Context, obj T, mayAdopt func() error) (bool, error) {
	controller := metav1.GetControllerOfNoCopy(obj)
	matches := c.selector.Matches(labels.Set(obj.GetLabels()))
	switch {
	case controller != nil && controller.UID != c.owner.GetUID():
		return false, nil
	case controller != nil && (matches || c.owner.GetDeletionTimestamp() != nil):
		return true, nil
	case controller != nil:
		return false, c.release(ctx, obj)
	case !matches || c.owner.GetDeletionTimestamp() != nil || obj.GetDeletionTimestamp() != nil:
		return false, nil
	}
	if err := mayAdopt(); err != nil {
		return false, fmt.Errorf("adopt %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	return c.adopt(ctx, obj)
}

func (c claimer[T]) mayAdopt(ctx context.Context) error {
	live, err := c.reread(ctx)
	switch {
	case err != nil:
		return err
	case live.GetUID() != c.owner.GetUID():
		return ErrReplaced
	case live.GetDeletionTimestamp() != nil:
		return ErrDeleting
	}
	return nil
}

// adopt writes our controller reference. The uid in the patch is a precondition: another object of the same name fails.
func (c claimer[T]) adopt(ctx context.Context, obj T) (bool, error) {
	err := c.patch(ctx, obj, ownerPatch(obj.GetUID(), *metav1.NewControllerRef(c.owner, c.kind)))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (c claimer[T]) release(ctx context.Context, obj T) error {
	err := c.patch(ctx, obj, ownerPatch(obj.GetUID(), map[string]any{"$patch": "delete", "uid": c.owner.GetUID()}))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) { // gone, or no longer the object that we saw
		return nil
	}
	return err
}

// ownerPatch is a strategic merge patch: ownerReferences merge by uid.
func ownerPatch(uid types.UID, reference any) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "ownerReferences": []any{reference}}})
	if err != nil {
		panic(fmt.Sprintf("controllers: owner patch: %v", err)) // strings and booleans always marshal
	}
	return patch
}

// byController is an informer index from the uid of the controller to the objects it owns. Objects without a controller
// are under orphansOf their namespace: an owner needs both lists and no others.
const byController = "controller"

func orphansOf(namespace string) string { return "orphans/" + namespace }

func indexByController(informer cache.SharedIndexInformer) error {
	if _, done := informer.GetIndexer().GetIndexers()[byController]; done {
		return nil // for another controller
	}
	return informer.AddIndexers(cache.Indexers{byController: func(obj any) ([]string, error) {
		o, ok := obj.(metav1.Object)
		if !ok {
			return nil, nil
		}
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			return []string{string(owner.UID)}, nil
		}
		return []string{orphansOf(o.GetNamespace())}, nil
	}})
}

// indexed returns the objects under the given values of an index.
func indexed[T any](indexer cache.Indexer, index string, values ...string) ([]T, error) {
	var out []T
	for _, value := range values {
		objs, err := indexer.ByIndex(index, value)
		if err != nil {
			return nil, fmt.Errorf("controllers: index: %w", err)
		}
		for _, obj := range objs {
			out = append(out, obj.(T))
		}
	}
	return out, nil
}
