package leader

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// sighting is the Lease as this process has seen it last. It is safe for concurrent use.
type sighting struct {
	changed chan struct{} // holds one token while there is news

	mu    sync.Mutex // guards what follows
	known bool       // it was looked at
	lease *coordinationv1.Lease
	at    time.Time // when this version was seen for the first time
}

func newSighting() *sighting { return &sighting{changed: make(chan struct{}, 1)} }

// note takes a Lease, or nil if there is none, unless it is older than the one that is known.
func (s *sighting) note(lease *coordinationv1.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && lease != nil && s.lease != nil && !newer(lease, s.lease) {
		return
	}
	s.known, s.lease, s.at = true, lease, time.Now()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *sighting) last() (lease *coordinationv1.Lease, at time.Time, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease, s.at, s.known
}

// newer compares versions of one object, which can be compared (Kubernetes API concepts, since 1.35); another object of the
// same name is news.
func newer(a, b *coordinationv1.Lease) bool {
	if a.UID != b.UID {
		return true
	}
	return len(a.ResourceVersion) > len(b.ResourceVersion) || len(a.ResourceVersion) == len(b.ResourceVersion) && a.ResourceVersion > b.ResourceVersion
}

// watch notes what becomes of the Lease until ctx ends. It is no informer of client-go: those wait for longer and longer when a
// watch fails, and this one must know when it can again.
func (e *Elector) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if version, err := e.list(ctx); err == nil {
			e.follow(ctx, version)
		}
		select {
		case <-time.After(e.retryPeriod()):
		case <-ctx.Done():
		}
	}
}

// selection is the Lease alone.
func (e *Elector) selection() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, e.config.Name).String()}
}

// list notes the Lease, or that there is none, and returns the version from which on it can be watched.
func (e *Elector) list(ctx context.Context) (version string, err error) {
	asking, cancel := context.WithTimeout(ctx, e.renewDeadline())
	defer cancel()
	list, err := e.leases.List(asking, e.selection())
	if err != nil {
		return "", err
	}
	if len(list.Items) == 0 {
		e.seen.note(nil)
		return list.ResourceVersion, nil
	}
	e.seen.note(&list.Items[0])
	return list.ResourceVersion, nil
}

// follow notes what changes after a version, until the watch ends.
func (e *Elector) follow(ctx context.Context, version string) {
	options := e.selection()
	options.ResourceVersion = version
	w, err := e.leases.Watch(ctx, options)
	if err != nil {
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		lease, ok := event.Object.(*coordinationv1.Lease)
		switch {
		case !ok:
			return // an error, as that the version is too old
		case event.Type == watch.Deleted:
			e.seen.note(nil)
		default:
			e.seen.note(lease)
		}
	}
}
