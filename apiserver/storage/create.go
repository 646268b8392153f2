package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/watch"
)

// Create stores a new object under its name, or returns ErrExists. It has the row's strategy allocate
// what the server must choose. obj stays as it is; the result is what was stored.
func (s *Store) Create(ctx context.Context, obj runtime.Object, options CreateOptions) (*watch.Object, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	key, err := s.key(accessor.GetNamespace(), accessor.GetName())
	if err != nil {
		return nil, err
	}
	if options.DryRun {
		return s.createDry(ctx, key, obj)
	}
	for attempt := 1; ; attempt++ {
		w, err := s.prepare(ctx, key, nil, obj.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		w.beside = options.Beside
		object, err := s.commit(ctx, w)
		if lost, ok := asLost(err); ok {
			if lost.current != nil {
				return nil, ErrExists
			}
			if lost.beside {
				return nil, ErrBeside
			}
			if lost.claim != nil && (attempt == claimAttempts || s.row.Strategy.Allocate == nil) {
				return nil, lost.claim
			}
			continue // what we chose was taken meanwhile; or the object was there, and has gone
		}
		return object, err
	}
}

// createDry does all that Create does but the transaction.
func (s *Store) createDry(ctx context.Context, key string, obj runtime.Object) (*watch.Object, error) {
	present, err := s.readNewest(ctx, key)
	if err != nil {
		return nil, err
	}
	if present != nil {
		return nil, ErrExists
	}
	w, err := s.prepare(ctx, key, nil, obj.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	return watch.NewObject(key, w.value, 0, 0, s.codec), nil
}

// prepare turns the next state of an object, which is ours to change, into a write. current is nil
// for a new object.
func (s *Store) prepare(ctx context.Context, key string, current *watch.Object, next runtime.Object) (write, error) {
	old, err := decoded(current)
	if err != nil {
		return write{}, err
	}
	if err := s.allocate(ctx, key, next, old); err != nil {
		return write{}, err
	}
	value, err := s.codec.value(key, next, current)
	if err != nil {
		return write{}, err
	}
	claims, err := s.diffClaims(old, next)
	if err != nil {
		return write{}, err
	}
	return write{key: key, current: current, value: value, claims: claims}, nil
}
