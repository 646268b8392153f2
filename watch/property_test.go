package watch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"kontiki/mvcc"
	"kontiki/watch"
	"kontiki/watch/watchtest"
)

const prefix = "/registry/configmaps/"

// labelCodec makes a ConfigMap of a value: the value is its label "l".
type labelCodec struct{}

func (labelCodec) Decode(_ string, value []byte, revision int64) (runtime.Object, error) {
	if string(value) == "corrupt" {
		return nil, errors.New("corrupt")
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: fmt.Sprint(revision), Labels: map[string]string{"l": string(value)},
	}}, nil
}

func (labelCodec) Fields(runtime.Object) fields.Set { return fields.Set{} }

func (labelCodec) Memos() *watch.Memos { return nil }

// TestWatchersSeeExactlyTheirEvents_AP01_AP02_AP11 lets random writes, watches, compactions and failures of the store
// happen in any order, and compares what each watcher saw with what a replay of the writes says.
func TestWatchersSeeExactlyTheirEvents_AP01_AP02_AP11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) { propertyRun(t, modelStore{watchtest.New()}) })
	})
}

// TestWatchersOfARealStore is the same over a store of one member, which all runs share. It cannot be
// held up; an interruption restarts it.
func TestWatchersOfARealStore_AP01_AP02_AP11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memberStore{t: t, dir: t.TempDir()}
		s.open()
		defer func() { require.NoError(t, s.current.Load().Close()) }()
		rapid.Check(inBubble{t}, func(t *rapid.T) { propertyRun(t, s) })
	})
}

// inBubble hides from rapid that this is a testing.T: its Deadline must not be asked for in a bubble.
type inBubble struct{ testing.TB }

// world is one run of the property test.
type world struct {
	store     store
	cache     *watch.Cache
	steps     []step
	revision  int64
	compacted int64
	followers []*follower
}

// step is one change of one key, as the test remembers it.
type step struct {
	revision int64
	key      string
	label    string // "" deletes
}

// follower is a watcher, what it asked for and what it has got.
type follower struct {
	*watch.Watcher
	after      int64  // start revision
	initial    bool   // starts with the state at that revision
	label      string // selector, "" for all
	start, end string // keys
	bookmarks  bool
	got        []string
	seen       int64 // the revision that the client would come back with: of its last event, or of a bookmark since
	ended      bool  // with 410, rightly
}

func propertyRun(t *rapid.T, s store) {
	w := &world{store: s}
	var err error
	w.revision, err = s.Revision(t.Context())
	require.NoError(t, err)
	w.commit(t, mvcc.Op{Delete: &mvcc.DeleteRequest{Key: []byte("/"), End: []byte("0")}}, put("begin", ""))
	w.store.compact(w.revision)
	w.compacted = w.revision
	feed := watch.NewFeed(s, watch.Config{KeepChanges: 4, MaxChanges: 8, RetryPeriod: time.Millisecond, BookmarkPeriod: 300 * time.Millisecond})
	defer feed.Close()
	w.cache = watch.NewCache(feed, prefix, labelCodec{})
	t.Repeat(map[string]func(*rapid.T){
		"write":     w.write,
		"delete":    w.delete,
		"together":  w.writeTogether,
		"elsewhere": func(t *rapid.T) { w.commit(t, put("/registry/pods/x", "x")) },
		"watch":     w.watch,
		"initial":   w.watchInitial,
		"drain":     w.drainOne,
		"resume":    w.resume,
		"list":      w.list,
		"settle":    func(*rapid.T) { w.store.settle() },
		"interrupt": w.store.interrupt,
		"hold":      func(*rapid.T) { w.store.hold() },
		"release":   func(*rapid.T) { w.store.release() },
		"compact":   w.compact,
	})
	w.store.release()
	for _, f := range w.followers {
		w.finish(t, f)
		if !f.ended {
			require.Equal(t, w.expected(f, w.revision), f.got, "watch of %q after %d", f.label, f.after)
		}
		f.Stop()
	}
}

func put(key, value string) mvcc.Op {
	return mvcc.Op{Put: &mvcc.PutRequest{Key: []byte(key), Value: []byte(value)}}
}

func (w *world) commit(t *rapid.T, ops ...mvcc.Op) {
	result, err := w.store.Txn(t.Context(), mvcc.TxnRequest{Then: ops})
	require.NoError(t, err)
	w.revision = result.Revision
}

var (
	someKey   = rapid.SampledFrom([]string{prefix + "a/1", prefix + "a/2", prefix + "b/1", prefix + "b/2"})
	someLabel = rapid.SampledFrom([]string{"x", "y"})
)

func (w *world) write(t *rapid.T) {
	key, label := someKey.Draw(t, "key"), someLabel.Draw(t, "label")
	w.commit(t, put(key, label))
	w.steps = append(w.steps, step{w.revision, key, label})
}

func (w *world) delete(t *rapid.T) {
	key := someKey.Draw(t, "key")
	if w.state(w.revision)[key] == "" {
		t.Skip("nothing to delete")
	}
	w.commit(t, mvcc.Op{Delete: &mvcc.DeleteRequest{Key: []byte(key)}})
	w.steps = append(w.steps, step{w.revision, key, ""})
}

// writeTogether changes two keys in one revision.
func (w *world) writeTogether(t *rapid.T) {
	keys := rapid.SliceOfNDistinct(someKey, 2, 2, rapid.ID).Draw(t, "keys")
	label := someLabel.Draw(t, "label")
	w.commit(t, put(keys[0], label), put(keys[1], label))
	w.steps = append(w.steps, step{w.revision, keys[0], label}, step{w.revision, keys[1], label})
}

func (w *world) compact(t *rapid.T) {
	to := rapid.Int64Range(w.compacted, w.revision).Draw(t, "to")
	if to > w.compacted {
		w.store.compact(to)
		w.compacted = to
	}
}

// watch starts anywhere, also where it is compacted.
func (w *world) watch(t *rapid.T) {
	f := newFollower(t)
	f.after = rapid.Int64Range(max(1, w.compacted-1), w.revision).Draw(t, "after")
	w.start(t, f, watch.WatchOptions{Filter: f.filter(), Revision: f.after})
}

// watchInitial starts with the present state.
func (w *world) watchInitial(t *rapid.T) {
	snapshot, err := w.cache.Snapshot(t.Context())
	require.NoError(t, err)
	f := newFollower(t)
	f.after, f.initial = snapshot.Revision, true
	w.start(t, f, watch.WatchOptions{Filter: f.filter(), Initial: snapshot, InitialEnd: true})
}

func newFollower(t *rapid.T) *follower {
	f := &follower{label: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "selector"), bookmarks: rapid.Bool().Draw(t, "bookmarks")}
	scope := prefix + rapid.SampledFrom([]string{"", "a/"}).Draw(t, "namespace")
	f.start, f.end = scope, watch.PrefixEnd(scope)
	return f
}

func (f *follower) filter() watch.Filter {
	filter := watch.Filter{Start: f.start, End: f.end}
	if f.label != "" {
		filter.Match = func(o *watch.Object) (bool, error) {
			labels, _, err := o.Attributes()
			return labels["l"] == f.label, err
		}
	}
	return filter
}

func (w *world) start(t *rapid.T, f *follower, options watch.WatchOptions) {
	options.Bookmarks = f.bookmarks
	f.seen = f.after
	var err error
	f.Watcher, err = w.cache.Watch(t.Context(), options)
	require.NoError(t, err)
	w.followers = append(w.followers, f)
}

func (w *world) drainOne(t *rapid.T) {
	if len(w.followers) == 0 {
		t.Skip("no watcher")
	}
	w.drain(t, rapid.SampledFrom(w.followers).Draw(t, "watcher"))
}

// resume breaks a client's connection: it watches again from the last revision that it has been told.
func (w *world) resume(t *rapid.T) {
	if len(w.followers) == 0 {
		t.Skip("no watcher")
	}
	f := rapid.SampledFrom(w.followers).Draw(t, "watcher")
	if f.ended || f.initial && !slices.Contains(f.got, "END") {
		t.Skip("nothing to come back to")
	}
	w.again(t, f)
}

func (w *world) again(t *rapid.T, f *follower) {
	f.Stop()
	var err error
	f.Watcher, err = w.cache.Watch(t.Context(), watch.WatchOptions{Filter: f.filter(), Revision: f.seen, Bookmarks: f.bookmarks})
	require.NoError(t, err)
}

// take notes what a watcher has said. A bookmark promises that the client has been told everything up to its revision.
func (w *world) take(t *rapid.T, f *follower, events []watch.Event) (only bool) {
	only = len(events) > 0
	for _, e := range events {
		if e.Type == watch.Bookmark && !e.InitialEventsEnd {
			require.True(t, f.bookmarks)
			require.GreaterOrEqual(t, e.Revision, f.seen)
			require.Equal(t, w.expected(f, e.Revision), f.got, "bookmark at %d", e.Revision)
			f.seen = e.Revision
			continue
		}
		only = false
		f.got = append(f.got, describe(e))
		f.seen = max(f.seen, e.Revision)
	}
	return only
}

// finish takes all that the watcher has to say.
func (w *world) finish(t *rapid.T, f *follower) {
	for range 5000 {
		if w.drain(t, f); f.ended || f.Revision() >= w.revision {
			return
		}
	}
	require.Fail(t, "watcher does not get there", "at %d of %d", f.Revision(), w.revision)
}

// drain takes what the watcher has to say by now, and checks it.
func (w *world) drain(t *rapid.T, f *follower) {
	for !f.ended {
		ctx, cancel := context.WithTimeout(t.Context(), w.store.quiet())
		events, err := f.Next(ctx)
		cancel()
		onlyBookmarks := w.take(t, f, events)
		var expired *watch.ExpiredError
		switch {
		case onlyBookmarks, errors.Is(err, context.DeadlineExceeded):
			require.Equal(t, w.expected(f, f.Revision()), f.got)
			return
		case errors.As(err, &expired):
			require.Less(t, f.Revision(), w.compacted, "410 although nothing is missing")
			require.Equal(t, w.expected(f, f.Revision()), f.got)
			f.ended = true
		case err != nil: // the store went away while it read history: the client comes back
			w.again(t, f)
		}
	}
}

func describe(e watch.Event) string {
	if e.Type == watch.Bookmark {
		return "END"
	}
	obj := e.Object.Object().(*corev1.ConfigMap)
	return fmt.Sprintf("%s %s=%s @%s", e.Type, e.Object.Key, obj.Labels["l"], obj.ResourceVersion)
}

// state is what a replay of the steps leaves at a revision.
func (w *world) state(revision int64) map[string]string {
	state := map[string]string{}
	for _, s := range w.steps {
		if s.revision <= revision {
			state[s.key] = s.label
		}
	}
	maps.DeleteFunc(state, func(_, label string) bool { return label == "" })
	return state
}

// expected is what f must have seen once it has seen everything up to revision.
func (w *world) expected(f *follower, revision int64) []string {
	var seen []string
	sees := func(key, label string) bool {
		return key >= f.start && key < f.end && label != "" && (f.label == "" || f.label == label)
	}
	state := w.state(f.after)
	if f.initial {
		for _, key := range slices.Sorted(maps.Keys(state)) {
			if sees(key, state[key]) {
				seen = append(seen, fmt.Sprintf("ADDED %s=%s @%d", key, state[key], w.written(key, f.after)))
			}
		}
		seen = append(seen, "END")
	}
	for _, s := range w.steps {
		if s.revision <= f.after || s.revision > revision {
			continue
		}
		old := state[s.key]
		state[s.key] = s.label
		switch before, after := sees(s.key, old), sees(s.key, s.label); {
		case before && after:
			seen = append(seen, fmt.Sprintf("MODIFIED %s=%s @%d", s.key, s.label, s.revision))
		case after:
			seen = append(seen, fmt.Sprintf("ADDED %s=%s @%d", s.key, s.label, s.revision))
		case before:
			seen = append(seen, fmt.Sprintf("DELETED %s=%s @%d", s.key, old, s.revision))
		}
	}
	return seen
}

// written is the revision of a key's last write up to a revision.
func (w *world) written(key string, revision int64) int64 {
	var last int64
	for _, s := range w.steps {
		if s.key == key && s.revision <= revision {
			last = s.revision
		}
	}
	return last
}

// list compares a snapshot, of now or of the past, with a replay.
func (w *world) list(t *rapid.T) {
	snapshot, err := w.cache.Snapshot(t.Context())
	require.NoError(t, err)
	if rapid.Bool().Draw(t, "past") {
		at := rapid.Int64Range(min(1, w.compacted), w.revision).Draw(t, "at")
		snapshot, err = w.cache.SnapshotAt(t.Context(), at, prefix, watch.PrefixEnd(prefix))
		if at < w.compacted {
			require.ErrorAs(t, err, new(*watch.ExpiredError), "at %d, compacted at %d", at, w.compacted)
			return
		}
		require.NoError(t, err)
		require.Equal(t, at, snapshot.Revision)
	}
	have := map[string]string{}
	snapshot.Ascend(prefix, watch.PrefixEnd(prefix), func(o *watch.Object) bool {
		have[o.Key] = string(o.Value())
		return true
	})
	require.Equal(t, w.state(snapshot.Revision), have, "state at %d", snapshot.Revision)
}
