package apiserver

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/storage"
)

// followRetry is how long a server waits after it could not read the objects it works by.
const followRetry = time.Second

// follow keeps a part of the server as objects of the cluster say: it calls load, which reads them all and takes them into
// use, at once and whenever one of the resources changes, until ctx ends. load returns a revision from which on a watch
// misses no change. While that fails the part goes on with what it has.
func (s *Server) follow(ctx context.Context, part string, resources []schema.GroupVersionResource, load func(context.Context) (revision int64, err error)) {
	for ctx.Err() == nil {
		revision, err := load(ctx)
		if err == nil {
			err = s.waitForChange(ctx, resources, revision)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("a part of the server goes on with what it has", "part", part, "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(followRetry):
			}
		}
	}
}

// waitForChange returns nil when an object of one of the resources changes after revision.
func (s *Server) waitForChange(ctx context.Context, resources []schema.GroupVersionResource, revision int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan error, len(resources))
	for _, resource := range resources {
		go func() { changed <- nextChange(ctx, s.storeOf(s.table.Lookup(resource)), revision) }()
	}
	err := <-changed
	cancel()
	for range len(resources) - 1 {
		<-changed
	}
	return err
}

func nextChange(ctx context.Context, store *storage.Store, revision int64) error {
	none := false
	watcher, err := store.Watch(ctx, storage.WatchOptions{ResourceVersion: revisionString(revision), SendInitialEvents: &none})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	_, err = watcher.Next(ctx)
	return err
}

func listAll[T runtime.Object](ctx context.Context, store *storage.Store) (objects []T, revision int64, err error) {
	list, err := store.List(ctx, storage.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	for _, item := range list.Items {
		objects = append(objects, item.Object().(T))
	}
	return objects, list.Revision, nil
}
