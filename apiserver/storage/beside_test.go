package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// countBeside makes the ConfigMap "count" say one more in the transaction of a write.
func countBeside(b *storage.Beside) error {
	obj, err := b.Object()
	if err != nil {
		return err
	}
	next := obj.DeepCopyObject().(*corev1.ConfigMap)
	n, err := strconv.Atoi(next.Data["n"])
	if err != nil {
		return err
	}
	next.Data["n"] = strconv.Itoa(n + 1)
	b.Set(next)
	return nil
}

// createCounted creates an object and counts it.
func createCounted(ctx context.Context, s *storage.Store, name string) error {
	count, err := s.Beside(ctx, "t", "count")
	if err != nil {
		return err
	}
	defer count.End()
	for {
		if err := countBeside(count); err != nil {
			return err
		}
		_, err = s.Create(ctx, configMap(name, nil), storage.CreateOptions{Beside: []*storage.Beside{count}})
		if !errors.Is(err, storage.ErrBeside) {
			return err
		}
	}
}

// What is written beside an object is exact: whoever writes at the same time, on whichever server, and whatever fails.
func TestBesideIsWrittenWithTheObjectOrNotAtAll(t *testing.T) {
	const writers, each = 4, 8
	overAll(t, func(t *testing.T, e env) {
		servers := []*storage.Store{e.configMaps(), newEnv(t, e.kv, storage.Config{}).configMaps()}
		count := configMap("count", nil)
		count.Data["n"] = "0"
		mustCreate(t, servers[0], count)
		mustCreate(t, servers[0], configMap("taken", nil))

		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					s := servers[(w+i)%2]
					if err := createCounted(t.Context(), s, fmt.Sprintf("o-%d-%d", w, i)); err != nil {
						t.Errorf("create: %v", err)
					}
					if err := createCounted(t.Context(), s, "taken"); !errors.Is(err, storage.ErrExists) {
						t.Errorf("create of what exists: %v", err)
					}
				}
			})
		}
		wg.Wait()
		now, err := servers[0].Get(t.Context(), "t", "count", storage.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(writers*each), now.Object().(*corev1.ConfigMap).Data["n"])
	})
}

// An update whose companion has changed is computed again, and the reader of this server sees both at once.
func TestUpdateWithBeside(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s, other := e.configMaps(), newEnv(t, e.kv, storage.Config{}).configMaps()
		count := configMap("count", nil)
		count.Data["n"] = "0"
		mustCreate(t, s, count)
		mustCreate(t, s, configMap("a", nil))

		beside, err := s.Beside(t.Context(), "t", "count")
		require.NoError(t, err)
		calls := 0
		result, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{Beside: func() []*storage.Beside { return []*storage.Beside{beside} }},
			func(current *watch.Object) (runtime.Object, error) {
				if calls++; calls == 1 { // somebody else counts meanwhile
					require.NoError(t, createCounted(t.Context(), other, "b"))
				}
				next := current.Object().DeepCopyObject().(*corev1.ConfigMap)
				next.Data = map[string]string{"call": strconv.Itoa(calls)}
				return next, countBeside(beside)
			})
		require.NoError(t, err)
		beside.End()
		require.Equal(t, 2, calls)
		require.Equal(t, resourceVersion(result.Object), s.Written())
		read, err := s.Get(t.Context(), "t", "count", storage.GetOptions{ResourceVersion: s.Written()})
		require.NoError(t, err)
		require.Equal(t, "2", read.Object().(*corev1.ConfigMap).Data["n"])
		require.Equal(t, result.Object.Revision, read.Revision, "one transaction")
	})
}
