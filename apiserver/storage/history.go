package storage

import (
	"context"
	"errors"
	"slices"
	"time"

	"kontiki/mvcc"
	"kontiki/raftstore"
	"kontiki/watch"
)

// Version is an object as one write left it.
type Version struct {
	Object   *watch.Object // nil if the write deleted it
	Revision int64
	Created  bool // the write created the object
	// What the raft log says about the write; zero where it does not reach back so far, and with a store
	// outside, which has no place for it.
	Index, Term uint64
	At          *time.Time
	By          *raftstore.Origin
}

// History is what the store still knows of an object's past.
type History struct {
	Versions []Version // oldest first; of several objects, if one of the name was deleted and made again
	// Compacted is the revision below which the store has forgotten what was superseded; 0 if it has forgotten nothing.
	Compacted int64
	Current   int64 // the newest revision of the store, which the history is complete up to
}

// attributing is a KV that knows who made each change: the member in this process.
type attributing interface {
	History(key []byte) ([]raftstore.KeyChange, error)
}

// historyAttempts is how often a history is read anew when the store is compacted in the middle of it.
const historyAttempts = 3

// History returns all versions of an object that compaction has left.
func (s *Store) History(ctx context.Context, namespace, name string) (History, error) {
	key, err := s.key(namespace, name)
	if err != nil {
		return History{}, err
	}
	for attempt := 1; ; attempt++ {
		h, err := s.history(ctx, []byte(key))
		if errors.Is(err, mvcc.ErrCompacted) && attempt < historyAttempts {
			continue
		}
		if err != nil {
			return History{}, s.historyError(ctx, err, h.Compacted)
		}
		if len(h.Versions) == 0 {
			return h, ErrNotFound
		}
		return h, nil
	}
}

func (s *Store) history(ctx context.Context, key []byte) (h History, err error) {
	if h.Current, err = s.kv.Revision(ctx); err != nil {
		return h, err
	}
	if h.Compacted, err = s.compacted(ctx, key); err != nil {
		return h, err
	}
	if member, ok := s.kv.(attributing); ok {
		all, err := s.attributed(member, key)
		h.Versions = since(h.Compacted, all)
		return h, err
	}
	h.Versions, err = s.replayed(ctx, key, h.Compacted, h.Current)
	return h, err
}

// compacted learns how far the store is compacted from a watch that starts at its beginning: before anything else
// of note it says that this cannot be had, if so, and from which revision on it can.
func (s *Store) compacted(ctx context.Context, key []byte) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for batch := range s.kv.Watch(ctx, mvcc.WatchRequest{Key: key, StartRevision: 1, Progress: true}) {
		switch {
		case errors.Is(batch.Err, mvcc.ErrCompacted):
			return batch.CompactRevision, nil
		case batch.Err != nil:
			return 0, batch.Err
		case batch.Revision > 0:
			return 0, nil
		}
	}
	return 0, ctx.Err()
}

// attributed asks the member.
func (s *Store) attributed(member attributing, key []byte) (versions []Version, err error) {
	changes, err := member.History(key)
	for _, c := range changes {
		v := Version{Revision: c.Revision, Index: c.Index, Term: c.Term, At: c.At, By: c.By}
		if c.Kind == "put" {
			v.Object = watch.NewObject(string(key), c.Value, c.Revision, c.CreateRevision, s.codec)
			v.Created = c.CreateRevision == c.Revision
		}
		versions = append(versions, v)
	}
	return versions, err
}

// since leaves out what compaction has taken, or will in a moment: what can be read is the state at the compacted
// revision, and all that was written later.
func since(compacted int64, versions []Version) []Version {
	first := 0
	for i, v := range versions {
		if v.Revision > compacted {
			break
		}
		if first = i; v.Object == nil {
			first = i + 1
		}
	}
	return versions[first:]
}

// replayed reads what was there when the store was compacted, and watches what has happened since: the way that
// every store with etcd's API offers.
func (s *Store) replayed(ctx context.Context, key []byte, compacted, current int64) (versions []Version, err error) {
	if compacted > 0 {
		base, err := s.kv.Range(ctx, mvcc.RangeRequest{Key: key, Revision: compacted})
		if err != nil {
			return nil, err
		}
		for _, kv := range base.KVs {
			versions = append(versions, s.version(kv))
		}
	}
	if compacted >= current {
		return versions, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for batch := range s.kv.Watch(ctx, mvcc.WatchRequest{Key: key, StartRevision: compacted + 1, Progress: true}) {
		if batch.Err != nil {
			return nil, batch.Err
		}
		for _, event := range batch.Events {
			v := Version{Revision: event.KV.ModRevision}
			if event.Type == mvcc.PutEvent {
				v = s.version(event.KV)
			}
			versions = append(versions, v)
		}
		if batch.Revision >= current {
			return slices.DeleteFunc(versions, func(v Version) bool { return v.Revision > current }), nil
		}
	}
	return nil, ctx.Err()
}

func (s *Store) version(kv mvcc.KeyValue) Version {
	return Version{Object: s.object(kv), Revision: kv.ModRevision, Created: kv.CreateRevision == kv.ModRevision}
}
