package registry

import (
	"context"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Whatever a client sends, no function of a row panics, defaults are idempotent, and what is only
// read stays as it was.
func TestRandomObjects(t *testing.T) {
	table := Builtin(Options{})
	codecs := serializer.NewCodecFactory(table.Scheme())
	ctx := context.Background()
	for seed := range int64(30) {
		fill := fuzzer.FuzzerFor(randomFuncs, rand.NewSource(seed), codecs)
		for _, r := range table.Resources() {
			obj := r.New()
			fill.Fill(obj)
			s := r.Strategy
			if s.Default != nil {
				s.Default(obj)
				once := obj.DeepCopyObject()
				s.Default(obj)
				require.Equal(t, once, obj, "%s, seed %d: defaults are not idempotent", r.Resource, seed)
			}
			old := obj.DeepCopyObject()
			if s.PrepareForCreate != nil {
				s.PrepareForCreate(ctx, obj)
			}
			if s.PrepareForUpdate != nil {
				s.PrepareForUpdate(ctx, obj, old)
			}
			before := obj.DeepCopyObject()
			readAll(t, ctx, r, obj, old)
			require.Equal(t, before, obj, "%s, seed %d: a function that reads has written", r.Resource, seed)
			if s.Allocate != nil {
				_ = s.Allocate(ctx, obj, nil, func(string) bool { return false }) // refusing is fine
			}
			changeAll(ctx, r, obj, old)
		}
	}
}

// readAll calls everything that only looks at obj.
func readAll(t *testing.T, ctx context.Context, r *Resource, obj, old runtime.Object) {
	s := r.Strategy
	if s.Validate != nil {
		s.Validate(ctx, obj)
	}
	if s.ValidateUpdate != nil {
		s.ValidateUpdate(ctx, obj, old)
	}
	if s.Warnings != nil {
		s.Warnings(ctx, obj, old)
	}
	if s.GracePeriod != nil {
		s.GracePeriod(obj, nil)
	}
	if s.Claims != nil {
		s.Claims(obj)
	}
	if r.Fields != nil {
		r.Fields(obj)
	}
	if r.Row != nil {
		require.Len(t, r.Row(obj, time.Now()), len(r.Columns))
	}
	if r.Hub != nil {
		stored, err := r.ToHub(obj)
		require.NoError(t, err)
		back, err := r.FromHub(stored)
		require.NoError(t, err)
		require.Equal(t, withoutKind(obj), withoutKind(back), "%s does not come back from its hub", r.Resource)
	}
}

func withoutKind(obj runtime.Object) runtime.Object {
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}

// changeAll writes through every subresource.
func changeAll(ctx context.Context, r *Resource, obj, old runtime.Object) {
	for _, s := range r.Subresources {
		next := obj.DeepCopyObject()
		switch {
		case s.Update != nil:
			s.Update(ctx, next, old)
			if s.Validate != nil {
				s.Validate(ctx, next, old)
			}
		case s.Project != nil:
			view, err := s.Project.Get(next)
			if err == nil { // a selector may be no selector, a number negative
				_ = s.Project.Set(next, view)
			}
		case s.Create != nil:
			_ = s.Create(ctx, next, s.New()) // refusing is fine
		}
	}
}
