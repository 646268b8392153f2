package storage_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/mvcc"
	"kontiki/watch"
	"kontiki/watch/watchtest"
)

func putRaw(t testing.TB, e env, key, value string) int64 {
	t.Helper()
	result, err := e.kv.Txn(t.Context(), mvcc.TxnRequest{Then: []mvcc.Op{{Put: &mvcc.PutRequest{Key: []byte(key), Value: []byte(value)}}}})
	require.NoError(t, err)
	return result.Revision
}

// events returns the next n events of a watch, as "TYPE name@resourceVersion".
func events(t testing.TB, w *watch.Watcher, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	for len(got) < n {
		batch, err := w.Next(ctx)
		require.NoError(t, err, "after %v", got)
		for _, event := range batch {
			if event.Type == watch.Bookmark {
				got = append(got, fmt.Sprintf("BOOKMARK end=%v", event.InitialEventsEnd))
				continue
			}
			got = append(got, fmt.Sprintf("%s %s@%s", event.Type, names([]*watch.Object{event.Object})[0], resourceVersion(event.Object)))
		}
	}
	return got
}

func mustWatch(t testing.TB, s *storage.Store, options storage.WatchOptions) *watch.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

func TestAP02_WatchStartsBehindItsRevision(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		created := mustCreate(t, s, configMap("c", nil))
		live := mustWatch(t, s, storage.WatchOptions{ResourceVersion: resourceVersion(created)})
		updated := mustUpdate(t, s, "c", setData("k", "2")).Object
		want := []string{"MODIFIED c@" + resourceVersion(updated)}
		require.Equal(t, want, events(t, live, 1))
		// The same from the store's history: a server that has just started.
		restarted := newEnv(t, e.kv, storage.Config{}).configMaps()
		require.Equal(t, want, events(t, mustWatch(t, restarted, storage.WatchOptions{ResourceVersion: resourceVersion(created)}), 1))
	})
}

func TestAP11_ObjectEntersAndLeavesASelector(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		start := fmt.Sprint(mustCreate(t, s, configMap("before", nil)).Revision)
		live := mustWatch(t, s, storage.WatchOptions{Selection: odd(), ResourceVersion: start})
		first := mustCreate(t, s, configMap("c", map[string]string{"odd": "yes"}))
		left := mustUpdate(t, s, "c", setLabel("odd", "no")).Object
		mustUpdate(t, s, "c", setData("k", "unseen"))
		entered := mustUpdate(t, s, "c", setLabel("odd", "yes")).Object
		deleted, err := s.Update(t.Context(), "t", "c", storage.UpdateOptions{}, remove)
		require.NoError(t, err)
		want := []string{
			"ADDED c@" + resourceVersion(first), "DELETED c@" + resourceVersion(left),
			"ADDED c@" + resourceVersion(entered), "DELETED c@" + resourceVersion(deleted.Object),
		}
		require.Equal(t, want, events(t, live, 4))
		restarted := newEnv(t, e.kv, storage.Config{}).configMaps()
		require.Equal(t, want, events(t, mustWatch(t, restarted, storage.WatchOptions{Selection: odd(), ResourceVersion: start}), 4))
	})
}

func TestAP01_WatchFromACompactedRevision(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		first := mustCreate(t, s, configMap("a", nil))
		mustUpdate(t, s, "a", setData("k", "2"))
		e.kv.compactTo(mustUpdate(t, s, "a", setData("k", "3")).Object.Revision)
		restarted := newEnv(t, e.kv, storage.Config{}).configMaps()
		w := mustWatch(t, restarted, storage.WatchOptions{ResourceVersion: resourceVersion(first)})
		got, err := w.Next(t.Context())
		require.Empty(t, got)
		require.ErrorIs(t, err, watch.ErrExpired)
	})
}

// TestAP03_WhatAWatchStartsWith walks through resourceVersion × sendInitialEvents, on a resource with
// one object and on an empty one.
func TestAP03_WhatAWatchStartsWith(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		full, empty := e.configMaps(), e.rows("", "v1", "secrets")
		created := mustCreate(t, full, configMap("a", nil))
		yes, no := true, false
		added, end := "ADDED a@"+resourceVersion(created), "BOOKMARK end=true"
		for _, rv := range []string{"", "0", resourceVersion(created)} {
			w := mustWatch(t, full, storage.WatchOptions{ResourceVersion: rv, SendInitialEvents: &yes, Bookmarks: true})
			require.Equal(t, []string{added, end}, events(t, w, 2), "rv %q", rv)
			w = mustWatch(t, empty, storage.WatchOptions{ResourceVersion: rv, SendInitialEvents: &yes, Bookmarks: true})
			require.Equal(t, []string{end}, events(t, w, 1), "rv %q", rv)
		}
		for _, rv := range []string{"", "0"} {
			require.Equal(t, []string{added}, events(t, mustWatch(t, full, storage.WatchOptions{ResourceVersion: rv}), 1), "rv %q", rv)
		}
		silent := mustWatch(t, full, storage.WatchOptions{SendInitialEvents: &no})
		next := mustUpdate(t, full, "a", setData("k", "2")).Object
		require.Equal(t, []string{"MODIFIED a@" + resourceVersion(next)}, events(t, silent, 1))
	})
}

func TestBookmarkObject(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		bookmark := s.Bookmark(watch.Event{Type: watch.Bookmark, Revision: 7, InitialEventsEnd: true}).(*corev1.ConfigMap)
		require.Equal(t, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: map[string]string{"k8s.io/initial-events-end": "true"}},
		}, bookmark)
	})
}

func TestWritersAndWatchersShareOneObject(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		w := mustWatch(t, s, storage.WatchOptions{})
		created := mustCreate(t, s, configMap("a", nil))
		batch, err := w.Next(t.Context())
		require.NoError(t, err)
		got, err := s.Get(t.Context(), "t", "a", storage.GetOptions{})
		require.NoError(t, err)
		require.Same(t, batch[0].Object, got)
		require.Equal(t, created.Object(), got.Object())
	})
}

func TestEventsExpireAfterTheirLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, modelKV{watchtest.New()}, storage.Config{})
		s := e.rows("", "v1", "events")
		event := func(name string) *corev1.Event {
			return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: name, CreationTimestamp: metav1.Now()}}
		}
		left := func() []string { return names(mustList(t, s, storage.ListOptions{}).Items) }
		mustCreate(t, s, event("once"))
		updated := event("again")
		mustCreate(t, s, updated)
		putRaw(t, e, "/registry/events/t/unreadable", "k8s\x00garbage")
		time.Sleep(40 * time.Minute)
		now := metav1.Now()
		updated.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &now}}
		mustUpdate(t, s, "again", func(*watch.Object) (runtime.Object, error) { return updated.DeepCopy(), nil })
		time.Sleep(25 * time.Minute)
		_, err := s.Get(t.Context(), "t", "once", storage.GetOptions{})
		require.ErrorIs(t, err, storage.ErrNotFound)
		require.NotEmpty(t, e.stored(t, "/registry/events/t/unreadable"), "what cannot be read is not deleted")
		_, err = e.kv.Txn(t.Context(), mvcc.TxnRequest{Then: []mvcc.Op{{Delete: &mvcc.DeleteRequest{Key: []byte("/registry/events/t/unreadable")}}}})
		require.NoError(t, err)
		require.Equal(t, []string{"again"}, left())
		time.Sleep(40 * time.Minute)
		require.Empty(t, left())
	})
}
