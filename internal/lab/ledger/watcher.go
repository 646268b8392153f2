package ledger

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Watcher follows what one writer makes, from before its first write on. It lists nothing: every event has to come.
type Watcher struct {
	Servers []kubernetes.Interface // the first one, and those where it goes on when a watch breaks off

	mu      sync.Mutex // guards what follows
	seen    map[string]int
	last    int64 // revision of the last event
	breaks  int   // times that the watch went on at another server
	trouble error // the first thing that was wrong
}

// Start returns when the watch is there; it goes on until ctx ends. The Writer must not have begun.
func (w *Watcher) Start(ctx context.Context, of *Writer) error {
	w.seen = map[string]int{}
	list, err := w.Servers[0].CoreV1().ConfigMaps(of.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("ledger: where to watch from: %w", err)
	}
	if w.last, err = strconv.ParseInt(list.ResourceVersion, 10, 64); err != nil {
		return fmt.Errorf("ledger: where to watch from: %w", err)
	}
	go w.follow(ctx, of) // ends with ctx
	return nil
}

// follow watches at one server after the other.
func (w *Watcher) follow(ctx context.Context, of *Writer) {
	for i := 0; ctx.Err() == nil; i++ {
		server := w.Servers[i%len(w.Servers)]
		events, err := server.CoreV1().ConfigMaps(of.Namespace).Watch(ctx, metav1.ListOptions{
			LabelSelector: Label + "=" + of.Name, ResourceVersion: strconv.FormatInt(w.position(), 10), AllowWatchBookmarks: true,
		})
		if err != nil {
			sleep(ctx, 50*time.Millisecond)
			continue
		}
		w.take(events)
		w.mu.Lock()
		w.breaks++
		w.mu.Unlock()
	}
}

func (w *Watcher) position() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// take reads a watch until it ends.
func (w *Watcher) take(events watch.Interface) {
	defer events.Stop()
	for event := range events.ResultChan() {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return // an error, such as a watch that was too slow: it goes on from the last revision
		}
		w.event(event.Type, object)
	}
}

func (w *Watcher) event(kind watch.EventType, object *corev1.ConfigMap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	revision, err := strconv.ParseInt(object.ResourceVersion, 10, 64)
	switch {
	case err != nil:
		w.wrong("%s %s has the revision %q", kind, object.Name, object.ResourceVersion)
	case revision < w.last, revision == w.last && kind != watch.Bookmark:
		w.wrong("%s %s of revision %d came after revision %d", kind, object.Name, revision, w.last)
	case kind == watch.Added:
		if w.seen[object.Name]++; w.seen[object.Name] > 1 {
			w.wrong("%s was told twice", object.Name)
		}
	}
	w.last = max(w.last, revision)
}

func (w *Watcher) wrong(format string, args ...any) {
	if w.trouble == nil {
		w.trouble = fmt.Errorf("%w: "+format, append([]any{ErrWatch}, args...)...)
	}
}

// Await waits until all of the writer's acknowledged writes have been told, and says how often the watch broke off. The error
// names a write that was not told, or what was told wrongly.
func (w *Watcher) Await(ctx context.Context, of *Writer) (breaks int, err error) {
	for {
		missing := w.missing(of)
		w.mu.Lock()
		breaks, err = w.breaks, w.trouble
		w.mu.Unlock()
		if err != nil || missing == "" {
			return breaks, err
		}
		if ctx.Err() != nil {
			return breaks, fmt.Errorf("%w: it did not tell of %s", ErrWatch, missing)
		}
		sleep(ctx, 20*time.Millisecond)
	}
}

// missing is an acknowledged write that has not been told; "" if there is none.
func (w *Watcher) missing(of *Writer) string {
	names := of.names()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if w.seen[name] == 0 {
			return name
		}
	}
	return ""
}
