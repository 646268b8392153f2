package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/watch"
)

// Watch starts a watch; the caller must Stop it. What the options mean together:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-watch
//
// A resourceVersion that is compacted shows in the first Next: *watch.ExpiredError.
func (s *Store) Watch(ctx context.Context, options WatchOptions) (*watch.Watcher, error) {
	filter, err := s.filter(options.Selection)
	if err != nil {
		return nil, err
	}
	start := watch.WatchOptions{Filter: filter, Bookmarks: options.Bookmarks}
	if err := s.startOfWatch(ctx, options, &start); err != nil {
		return nil, err
	}
	return s.cache.Watch(ctx, start)
}

// startOfWatch decides whether a watch begins with the present state, and at which revision.
func (s *Store) startOfWatch(ctx context.Context, options WatchOptions, start *watch.WatchOptions) error {
	revision, err := parseRevision(options.ResourceVersion)
	if err != nil {
		return err
	}
	initial := revision == 0
	if options.SendInitialEvents != nil {
		initial = *options.SendInitialEvents
		start.InitialEnd = initial && options.Bookmarks // it is told by a bookmark
	}
	if !initial && revision != 0 {
		start.Revision = revision
		return s.await(ctx, revision)
	}
	plan := listPlan{mode: notOlderThan, revision: revision}
	if options.ResourceVersion == "" {
		plan.mode = mostRecent
	}
	snapshot, err := s.snapshot(ctx, plan, start.Filter.Start, start.Filter.End)
	if err != nil {
		return s.listError(ctx, err, plan)
	}
	start.Revision = snapshot.Revision
	if !initial {
		return nil
	}
	start.Initial = snapshot
	return s.codec.decodeTogether(snapshot, start.Filter.Start, start.Filter.End, 0)
}

// Bookmark makes the object of a bookmark event: of the row's kind, empty but for its resourceVersion
// and, at the end of the initial events, the annotation that says so.
func (s *Store) Bookmark(event watch.Event) runtime.Object {
	obj := s.row.New()
	obj.GetObjectKind().SetGroupVersionKind(s.row.GroupVersionKind())
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err) // rows are made of objects
	}
	accessor.SetResourceVersion(formatRevision(event.Revision))
	if event.InitialEventsEnd {
		accessor.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return obj
}
