package leader

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// world has one Lease, versioned as an API server does it, and candidates that can be cut off from it, in virtual time.
type world struct {
	t *testing.T

	mu       sync.Mutex // guards what follows
	version  int
	lease    *coordinationv1.Lease
	writes   int
	watchers map[*watcher]bool
	acting   map[string]time.Time // who works, and since when
	history  []string             // "NAME begins", "NAME ends"
	times    []time.Time
}

// watcher is a watch.Interface.
type watcher struct {
	of     *link
	events chan watch.Event // closed when it is not among world.watchers any more
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) Stop() {
	w.of.world.mu.Lock()
	defer w.of.world.mu.Unlock()
	w.end()
}

// end is called with world.mu held.
func (w *watcher) end() {
	if w.of.world.watchers[w] {
		delete(w.of.world.watchers, w)
		close(w.events)
	}
}

func newWorld(t *testing.T) *world {
	return &world{t: t, watchers: map[*watcher]bool{}, acting: map[string]time.Time{}}
}

var errCut = errors.New("no route to host")

// link is a candidate's way to the world.
type link struct {
	coordinationclient.LeaseInterface // what a candidate does not call is nil
	world                             *world
	isCut                             bool // requests fail and nothing is heard; guarded by world.mu
	isDeaf                            bool // requests arrive, and their answers do not
}

func (w *world) set(l *link, cut, deaf bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.isCut, l.isDeaf = cut, deaf
	for other := range w.watchers {
		if other.of == l && cut {
			other.end()
		}
	}
}

// do is one request.
func (l *link) do(ctx context.Context, f func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	l.world.mu.Lock()
	cut, deaf := l.isCut, l.isDeaf
	var lease *coordinationv1.Lease
	err := errCut
	if !cut {
		lease, err = f()
	}
	l.world.mu.Unlock()
	if deaf {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return lease.DeepCopy(), nil
}

var resource = coordinationv1.Resource("leases")

func (l *link) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.do(ctx, func() (*coordinationv1.Lease, error) {
		if l.world.lease == nil {
			return nil, apierrors.NewNotFound(resource, name)
		}
		return l.world.lease, nil
	})
}

func (l *link) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.do(ctx, func() (*coordinationv1.Lease, error) {
		if l.world.lease != nil {
			return nil, apierrors.NewAlreadyExists(resource, lease.Name)
		}
		return l.world.write(lease, watch.Added), nil
	})
}

func (l *link) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.do(ctx, func() (*coordinationv1.Lease, error) {
		if l.world.lease == nil {
			return nil, apierrors.NewNotFound(resource, lease.Name)
		}
		if l.world.lease.ResourceVersion != lease.ResourceVersion {
			return nil, apierrors.NewConflict(resource, lease.Name, errors.New("it has changed"))
		}
		return l.world.write(lease, watch.Modified), nil
	})
}

// write is called with mu held.
func (w *world) write(lease *coordinationv1.Lease, event watch.EventType) *coordinationv1.Lease {
	w.version++
	w.writes++
	w.lease = lease.DeepCopy()
	w.lease.ResourceVersion = strconv.Itoa(w.version)
	for other := range w.watchers {
		other.events <- watch.Event{Type: event, Object: w.lease.DeepCopy()}
	}
	return w.lease
}

func (w *world) remove() {
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := w.lease
	w.lease = nil
	for other := range w.watchers {
		other.events <- watch.Event{Type: watch.Deleted, Object: gone.DeepCopy()}
	}
}

func (l *link) List(ctx context.Context, _ metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	list := &coordinationv1.LeaseList{}
	_, err := l.do(ctx, func() (*coordinationv1.Lease, error) {
		list.ResourceVersion = strconv.Itoa(l.world.version)
		if l.world.lease != nil {
			list.Items = append(list.Items, *l.world.lease.DeepCopy())
		}
		return &coordinationv1.Lease{}, nil
	})
	return list, err
}

func (l *link) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if l.isCut {
		return nil, errCut
	}
	w := &watcher{of: l, events: make(chan watch.Event, 1000)}
	if o.ResourceVersion != strconv.Itoa(l.world.version) && l.world.lease != nil {
		w.events <- watch.Event{Type: watch.Modified, Object: l.world.lease.DeepCopy()}
	}
	l.world.watchers[w] = true
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

// candidate is one that notes when it works; it acts, for the world, as long as its fence lets writes pass.
type candidate struct {
	*Elector
	*link
	name string
	stop func() // returns when it has stopped
}

func (w *world) candidate(name string, duration time.Duration) *candidate {
	c := &candidate{name: name, link: &link{world: w}}
	c.Elector = &Elector{
		config: Config{Name: "test", Identity: name, Duration: duration, Log: slog.New(slog.DiscardHandler)},
		fence:  &fence{}, leases: c.link, seen: newSighting(),
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(ctx context.Context) error {
			w.note(c.name, true)
			defer w.note(c.name, false)
			<-ctx.Done()
			return nil
		})
	}()
	c.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
	return c
}

func (w *world) note(name string, begins bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := " ends"
	if begins {
		what = " begins"
	}
	w.history, w.times = append(w.history, name+what), append(w.times, time.Now())
}
