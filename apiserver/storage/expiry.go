package storage

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/watch"
)

// Objects of a row with a TTL (events) vanish that long after they were last written. Every server
// looks for them once a period and deletes the version that it has seen; that several do so is
// harmless. Kubernetes puts a lease of the store on each of them instead; ours needs no lease, no
// clock in the store, and costs one delete an event too.

// deadline is when a version of an object is due.
type deadline struct {
	revision int64
	due      time.Time
}

// expire deletes what is due, once a period, until ctx ends.
func (b *Backend) expire(ctx context.Context) {
	ticker := time.NewTicker(b.config.ExpiryPeriod)
	defer ticker.Stop()
	known := map[*Store]map[string]deadline{}
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, s := range b.all() {
			if s.row.Strategy.TTL > 0 && s.row.Hub == nil {
				known[s] = s.expireDue(ctx, known[s])
			}
		}
	}
}

// expireDue deletes the objects that are due and returns the deadlines of the others. Those in known
// need not be decoded again.
func (s *Store) expireDue(ctx context.Context, known map[string]deadline) map[string]deadline {
	snapshot, err := s.cache.Snapshot(ctx)
	if err != nil {
		return known
	}
	now, next := time.Now(), make(map[string]deadline, snapshot.Len())
	snapshot.Ascend(s.cache.Prefix(), watch.PrefixEnd(s.cache.Prefix()), func(o *watch.Object) bool {
		d := known[o.Key]
		if d.revision != o.Revision {
			d = deadline{revision: o.Revision, due: s.due(o)}
		}
		if now.Before(d.due) {
			next[o.Key] = d
		} else if err := s.expireOne(ctx, o); err != nil {
			s.config.Log.WarnContext(ctx, "expired object not deleted", "key", o.Key, "err", err)
		}
		return ctx.Err() == nil
	})
	return next
}

// expireOne deletes this version of the object. If it has been written since, it is not due any more.
func (s *Store) expireOne(ctx context.Context, o *watch.Object) error {
	var old runtime.Object
	if s.row.Strategy.Claims != nil {
		var err error
		if old, err = o.Get(); err != nil {
			return err
		}
	}
	claims, err := s.diffClaims(old, nil)
	if err != nil {
		return err
	}
	_, err = s.commit(ctx, write{key: o.Key, current: o, claims: claims})
	if _, ok := asLost(err); ok {
		return nil
	}
	return err
}

// due is a TTL after the last write, as far as the object's metadata tells. An object that
// tells no time, or cannot be decoded, is never due: nothing is deleted for lack of knowledge.
func (s *Store) due(o *watch.Object) time.Time {
	obj, err := o.Peek()
	if err != nil {
		return never
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return never
	}
	last := accessor.GetCreationTimestamp().Time
	for _, entry := range accessor.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	if last.IsZero() {
		return never
	}
	return last.Add(s.row.Strategy.TTL)
}

// never is later than any due time.
var never = time.Unix(1<<40, 0)
