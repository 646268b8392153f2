package watch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/watch"
	"kontiki/watch/watchtest"
)

var everything = watch.Filter{Start: prefix, End: watch.PrefixEnd(prefix)}

// newCache returns a cache over a model store; the feed ends with the test.
func newCache(t *testing.T, config watch.Config) (*watchtest.Store, *watch.Feed, *watch.Cache) {
	s := watchtest.New()
	feed := watch.NewFeed(s, config)
	t.Cleanup(feed.Close)
	return s, feed, watch.NewCache(feed, prefix, labelCodec{})
}

func next(t *testing.T, w *watch.Watcher) []string {
	t.Helper()
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	var got []string
	for _, e := range events {
		if e.Type == watch.Bookmark {
			got = append(got, fmt.Sprintf("BOOKMARK @%d end=%v", e.Revision, e.InitialEventsEnd))
		} else {
			got = append(got, describe(e))
		}
	}
	return got
}

func TestAP03_InitialEventsEndOnAnEmptyIdleResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, cache := newCache(t, watch.Config{})
		snapshot, err := cache.Snapshot(t.Context())
		require.NoError(t, err)
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Initial: snapshot, InitialEnd: true})
		require.NoError(t, err)
		defer w.Stop()
		start := time.Now()
		require.Equal(t, []string{"BOOKMARK @1 end=true"}, next(t, w))
		require.Zero(t, time.Since(start))
	})
}

func TestBookmarksFollowTheStoreOnAQuietResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, cache := newCache(t, watch.Config{BookmarkPeriod: time.Minute})
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Revision: 1, Bookmarks: true})
		require.NoError(t, err)
		defer w.Stop()
		revision := s.Put("/registry/pods/elsewhere", "x")
		start := time.Now()
		require.Equal(t, []string{fmt.Sprintf("BOOKMARK @%d end=false", revision)}, next(t, w))
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestBookmarkBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, cache := newCache(t, watch.Config{})
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Revision: 1, Bookmarks: true})
		require.NoError(t, err)
		defer w.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		events, err := w.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, watch.Bookmark, events[0].Type)
		require.Equal(t, 28*time.Second, time.Since(start))
		_, err = w.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestAP11_DeletedCarriesTheLastStateAndTheRevisionOfTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, cache := newCache(t, watch.Config{})
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: (&follower{start: prefix, end: everything.End, label: "x"}).filter(), Revision: 1})
		require.NoError(t, err)
		defer w.Stop()
		for _, value := range []string{"x", "y", "z", "x"} {
			s.Put(prefix+"a/1", value)
		}
		s.Delete(prefix + "a/1")
		synctest.Wait()
		key := prefix + "a/1"
		require.Equal(t, []string{
			"ADDED " + key + "=x @2",
			"DELETED " + key + "=x @3",
			"ADDED " + key + "=x @5",
			"DELETED " + key + "=x @6",
		}, next(t, w))
	})
}

func TestAP01_TooOldEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, cache := newCache(t, watch.Config{})
		for range 5 {
			s.Put(prefix+"a/1", "x")
		}
		s.Compact(4)
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Revision: 2})
		require.NoError(t, err)
		defer w.Stop()
		events, err := w.Next(t.Context())
		require.Empty(t, events)
		require.ErrorIs(t, err, watch.ErrExpired)
		var gone *watch.ExpiredError
		require.ErrorAs(t, err, &gone)
		require.Equal(t, []int64{2, 4}, []int64{gone.Requested, gone.Compacted})
	})
}

func TestStoreThatGoesBackInTimeEndsWatchersAndIsReadAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, feed, cache := newCache(t, watch.Config{})
		before := s.Put(prefix+"a/1", "x")
		s.Put(prefix+"a/2", "x")
		synctest.Wait()
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Revision: feed.Revision()})
		require.NoError(t, err)
		defer w.Stop()
		s.RollBack(before)
		_, err = w.Next(t.Context())
		require.ErrorIs(t, err, watch.ErrExpired)
		snapshot, err := cache.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, snapshot.Revision)
		require.Equal(t, 1, snapshot.Len())
	})
}

func TestCloseEndsWatchersAndWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := watch.NewFeed(watchtest.New(), watch.Config{})
		cache := watch.NewCache(feed, prefix, labelCodec{})
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Revision: 1})
		require.NoError(t, err)
		defer w.Stop()
		ended := make(chan error, 2)
		go func() {
			_, err := w.Next(t.Context())
			ended <- err
		}()
		go func() { ended <- feed.Wait(t.Context(), 1000) }()
		synctest.Wait()
		feed.Close()
		require.ErrorIs(t, <-ended, watch.ErrClosed)
		require.ErrorIs(t, <-ended, watch.ErrClosed)
	})
}

func TestCorruptObjectEndsTheWatchThatWouldShowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, cache := newCache(t, watch.Config{})
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Revision: 1})
		require.NoError(t, err)
		defer w.Stop()
		s.Put(prefix+"a/1", "corrupt")
		_, err = w.Next(t.Context())
		var corrupt *watch.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Equal(t, prefix+"a/1", corrupt.Key)
	})
}

func TestSlowWatcherGetsEverythingInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, cache := newCache(t, watch.Config{KeepChanges: 4, MaxChanges: 8})
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Revision: 1})
		require.NoError(t, err)
		defer w.Stop()
		var want, got []string
		for i := range 2000 {
			key, kind := fmt.Sprintf("%sa/%d", prefix, i%100), "MODIFIED"
			if i < 100 {
				kind = "ADDED"
			}
			want = append(want, fmt.Sprintf("%s %s=x @%d", kind, key, s.Put(key, "x")))
		}
		synctest.Wait()
		for len(got) < len(want) {
			got = append(got, next(t, w)...)
		}
		require.Equal(t, want, got)
	})
}

func TestObjectsAreSharedAndDroppedWhenUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, feed, cache := newCache(t, watch.Config{SweepPeriod: time.Minute})
		require.NoError(t, feed.Wait(t.Context(), s.Put(prefix+"a/1", "x")))
		encodings := 0
		encode := func() {
			o, _, err := cache.Get(t.Context(), prefix+"a/1")
			require.NoError(t, err)
			_, err = o.Encoded("json", func(obj runtime.Object) ([]byte, error) {
				encodings++
				require.Equal(t, "2", obj.(*corev1.ConfigMap).ResourceVersion)
				return []byte("{}"), nil
			})
			require.NoError(t, err)
		}
		encode()
		encode()
		require.Equal(t, 1, encodings)
		time.Sleep(90 * time.Second) // one sweep: it was in use
		encode()
		require.Equal(t, 1, encodings)
		time.Sleep(3 * time.Minute)
		encode()
		require.Equal(t, 2, encodings)
	})
}

func TestOfferedObjectIsTheOneThatWatchersGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, cache := newCache(t, watch.Config{})
		w, err := cache.Watch(t.Context(), watch.WatchOptions{Filter: everything, Revision: 1})
		require.NoError(t, err)
		defer w.Stop()
		get := func() *watch.Object {
			events, err := w.Next(t.Context())
			require.NoError(t, err)
			return events[0].Object
		}
		offer := func(revision int64) *watch.Object {
			return cache.Offer(watch.NewObject(prefix+"a/1", []byte("x"), revision, 2, labelCodec{}))
		}
		s.Hold()
		early := offer(s.Put(prefix+"a/1", "x")) // the writer is faster than the feed
		s.Release()
		require.Same(t, early, get())

		revision := s.Put(prefix+"a/1", "x")
		known := get() // the feed is faster than the writer
		require.Same(t, known, offer(revision))
	})
}
