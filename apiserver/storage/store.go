package storage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"kontiki/apiserver/registry"
	"kontiki/mvcc"
	"kontiki/watch"
)

// Store keeps the objects of one row. It is safe for concurrent use.
type Store struct {
	kv     KV
	feed   *watch.Feed
	config Config

	row   *registry.Resource
	codec codec
	cache *watch.Cache
	turns turns // of updates

	written atomic.Int64 // the last revision that this server has made of an object of the row
}

func newStore(b *Backend, row *registry.Resource) *Store {
	s := &Store{kv: b.kv, feed: b.feed, config: b.config, row: row, codec: codec{row: row, hub: row, memos: b.feed.Memos()}}
	if row.Hub != nil {
		s.codec.hub = row.Hub
	}
	s.codec.atRest = b.config.Encryption.For(s.codec.hub.GroupResource())
	// A row with a hub has a cache of its own over the hub's keys: its objects are decoded into its
	// own version. The bytes are shared.
	s.cache = watch.NewCache(b.feed, s.codec.hub.Prefix+"/", s.codec)
	return s
}

// Get returns an object, or ErrNotFound, *FutureRevisionError, *watch.ExpiredError, *watch.CorruptError.
func (s *Store) Get(ctx context.Context, namespace, name string, options GetOptions) (*watch.Object, error) {
	key, err := s.key(namespace, name)
	if err != nil {
		return nil, err
	}
	revision, err := parseRevision(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	object, err := s.read(ctx, key, revision, options)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return nil, ErrNotFound
	}
	_, err = object.Get() // what is handed out is known to decode
	return object, err
}

// read returns nil if there is no object.
func (s *Store) read(ctx context.Context, key string, revision int64, options GetOptions) (*watch.Object, error) {
	switch {
	case options.ResourceVersion == "":
		return s.readNewest(ctx, key)
	case options.Exact:
		return s.readAt(ctx, key, revision)
	}
	if err := s.await(ctx, revision); err != nil {
		return nil, err
	}
	object, _, err := s.cache.Get(ctx, key)
	return object, err
}

// readNewest reads consistently: it sees every write that was acknowledged before it began. The
// store says which revision that is; usually the cache is there already.
func (s *Store) readNewest(ctx context.Context, key string) (*watch.Object, error) {
	revision, err := s.kv.Revision(ctx)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	err = s.await(ctx, revision)
	if s.cacheIsBehind(ctx, err) {
		return s.readAt(ctx, key, revision)
	}
	if err != nil {
		return nil, err
	}
	object, _, err := s.cache.Get(ctx, key)
	return object, err
}

// cacheIsBehind says whether await failed only because the cache is too slow. Then the store can be read instead.
func (s *Store) cacheIsBehind(ctx context.Context, awaited error) bool {
	var behind *FutureRevisionError
	if !errors.As(awaited, &behind) {
		return false
	}
	s.config.Log.WarnContext(ctx, "watch cache is behind the store",
		"resource", s.row.Resource, "want", behind.Requested, "have", behind.Current)
	return true
}

// readAt reads the state of the past, from the store.
func (s *Store) readAt(ctx context.Context, key string, revision int64) (*watch.Object, error) {
	result, err := s.kv.Range(ctx, mvcc.RangeRequest{Key: []byte(key), Revision: revision})
	if err != nil {
		return nil, s.historyError(ctx, err, revision)
	}
	if len(result.KVs) == 0 {
		return nil, nil
	}
	return s.object(result.KVs[0]), nil
}

func (s *Store) object(kv mvcc.KeyValue) *watch.Object {
	return watch.NewObject(string(kv.Key), kv.Value, kv.ModRevision, kv.CreateRevision, s.codec)
}

// await waits for the cache to reach revision, but no longer than FreshWait; then the error is
// *FutureRevisionError.
func (s *Store) await(ctx context.Context, revision int64) error {
	if s.feed.Revision() >= revision && revision > 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.config.FreshWait)
	defer cancel()
	err := s.feed.Wait(limited, revision)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return &FutureRevisionError{Requested: revision, Current: s.feed.Revision()}
	}
	return err
}

// historyError words the store's errors about revisions as those of this package.
func (s *Store) historyError(ctx context.Context, err error, revision int64) error {
	switch {
	case errors.Is(err, mvcc.ErrCompacted):
		return s.feed.Expired(ctx, err, revision)
	case errors.Is(err, mvcc.ErrFutureRevision):
		return &FutureRevisionError{Requested: revision, Current: s.feed.Revision()}
	}
	return fmt.Errorf("read at revision %d: %w", revision, err)
}

// parseRevision reads a resourceVersion; "" is 0.
func parseRevision(resourceVersion string) (int64, error) {
	if resourceVersion == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(resourceVersion, 10, 63)
	if err != nil {
		return 0, &OptionError{Option: "resourceVersion", Value: resourceVersion, Reason: "must be a number that a server has given out"}
	}
	return int64(revision), nil
}
