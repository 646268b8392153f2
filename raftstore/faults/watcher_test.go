package faults

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// event is one change as a watch told it.
type event struct {
	key, value string
	version    int64
}

// watcher watches everything from the first revision on, on one member.
type watcher struct {
	mu     sync.Mutex // guards everything below
	events []event    // that of revision r is at r-firstRevision
	err    error
}

// firstRevision is that of the first write: an empty store is at revision 1.
const firstRevision = 2

// run watches until the context ends or something is wrong. The client resumes the watch at the next revision when its member was away.
func (w *watcher) run(ctx context.Context, client *clientv3.Client) {
	for answer := range client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if !w.take(answer) {
			return
		}
	}
	if ctx.Err() == nil {
		w.fail(fmt.Errorf("the watch has ended"))
	}
}

func (w *watcher) take(answer clientv3.WatchResponse) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = answer.Err(); w.err != nil {
		return false
	}
	for _, e := range answer.Events {
		next := firstRevision + int64(len(w.events))
		if e.Type != clientv3.EventTypePut || e.Kv.ModRevision != next {
			w.err = fmt.Errorf("%v of %s at revision %d, expected a PUT at %d", e.Type, e.Kv.Key, e.Kv.ModRevision, next)
			return false
		}
		w.events = append(w.events, event{string(e.Kv.Key), string(e.Kv.Value), e.Kv.Version})
	}
	return true
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// upTo returns the events up to a revision; ok is false as long as they have not all come.
func (w *watcher) upTo(revision int64) (events []event, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := int(revision - firstRevision + 1)
	if w.err != nil || len(w.events) < n {
		return nil, false, w.err
	}
	return w.events[:n], true, nil
}
