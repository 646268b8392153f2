package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// watchOptions do not wait for a connection: a watch that cannot begin says so at once.
var watchOptions = []grpc.CallOption{grpc.WaitForReady(false), grpc.MaxCallRecvMsgSize(math.MaxInt32)}

// watcher is one watch: a gRPC stream to a member of etcd, and the goroutine that reads it.
type watcher struct {
	store    *Store
	req      mvcc.WatchRequest
	out      chan mvcc.WatchBatch // room for one
	progress *progress
}

// Watch streams the changes of the keys in a range. If the connection is lost the watch ends with an
// *UnavailableError, and the receiver watches again from where it is. Without a StartRevision, Watch
// waits for etcd to say which revision is the next one.
func (s *Store) Watch(ctx context.Context, req mvcc.WatchRequest) <-chan mvcc.WatchBatch {
	w := &watcher{store: s, req: req, out: make(chan mvcc.WatchBatch, 1)}
	if req.StartRevision <= 0 {
		newest, err := s.Revision(ctx)
		if err != nil {
			w.out <- mvcc.WatchBatch{Err: err}
			close(w.out)
			return w.out
		}
		w.req.StartRevision = newest + 1
	}
	w.progress = newProgress(w.req.StartRevision - 2) // so that the first progress, at the revision before, is news
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		w.endClosed(w.req.StartRevision - 1)
		close(w.out)
		return w.out
	}
	s.running.Go(func() {
		defer close(w.out)
		w.end(ctx, w.run(ctx))
	})
	return w.out
}

// errEnded: the watch is over because of its receiver, who needs no reason.
var errEnded = errors.New("etcd: watch ended")

// run reads the stream until it ends and returns why.
func (w *watcher) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx)) // or it waits with a member that is cut off
	defer cancel()
	stream, err := w.store.stream.Watch(ctx, watchOptions...)
	if err != nil {
		return err
	}
	if err := stream.Send(watchRequest(&w.req)); err == nil && w.req.Progress { // else Recv has the reason
		defer w.store.asksForProgress(w)()
		w.store.running.Go(func() {
			w.progress.request(ctx, func() error { return stream.Send(progressRequest()) })
		})
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		batch, err := w.batch(response)
		if err != nil {
			return err
		}
		if len(batch.Events) == 0 && (!w.req.Progress || batch.Revision <= w.progress.told.Load()) {
			continue
		}
		if err := w.deliver(ctx, batch); err != nil {
			return err
		}
	}
}

// deliver hands a batch to the receiver. While it waits, nothing is read from the stream.
func (w *watcher) deliver(ctx context.Context, batch mvcc.WatchBatch) error {
	select {
	case w.out <- batch:
		w.progress.reached(batch.Revision)
		return nil
	case <-ctx.Done():
		return errEnded
	case <-w.store.closed:
		return raftstore.ErrClosed
	}
}

// compactedError ends a watch that needs what is compacted.
type compactedError struct{ revision int64 }

func (e compactedError) Error() string { return mvcc.ErrCompacted.Error() }

// batch makes a batch of a response: of events, of progress, or of nothing (revision 0).
func (w *watcher) batch(r *pb.WatchResponse) (mvcc.WatchBatch, error) {
	switch {
	case r.CompactRevision != 0:
		return mvcc.WatchBatch{}, compactedError{r.CompactRevision}
	case r.Canceled:
		return mvcc.WatchBatch{}, fmt.Errorf("etcd: watch: %s", r.CancelReason)
	case r.Created && r.Header.GetRevision() < w.req.StartRevision-1:
		return mvcc.WatchBatch{}, nil // the member is behind
	case r.Created:
		// Everything before the first revision has been delivered. etcd itself never says that: it
		// announces progress only of revisions that the watch would have seen.
		return mvcc.WatchBatch{Revision: w.req.StartRevision - 1}, nil
	case len(r.Events) == 0:
		return mvcc.WatchBatch{Revision: r.Header.GetRevision()}, nil
	}
	batch := mvcc.WatchBatch{Events: make([]mvcc.Event, 0, len(r.Events))}
	for _, e := range r.Events {
		if w.lost(e) {
			return mvcc.WatchBatch{}, compactedError{e.Kv.ModRevision}
		}
		batch.Events = append(batch.Events, event(e))
		batch.Revision = e.Kv.ModRevision
	}
	return batch, nil
}

// lost reports whether an event lacks the previous version that it must have had. etcd looks it up when
// it sends the event, and leaves it out if it has been compacted by then.
func (w *watcher) lost(e *mvccpb.Event) bool {
	created := e.Type == mvccpb.Event_PUT && e.Kv.CreateRevision == e.Kv.ModRevision
	return w.req.PrevKV && !w.req.PartialPrevKV && e.PrevKv == nil && !created
}

func event(e *mvccpb.Event) mvcc.Event {
	out := mvcc.Event{KV: keyValue(e.Kv), PrevKV: optionalKeyValue(e.PrevKv)}
	if e.Type == mvccpb.Event_DELETE {
		out.Type = mvcc.DeleteEvent
	}
	return out
}

// end delivers why the watch is over, unless the receiver has ended it.
func (w *watcher) end(ctx context.Context, err error) {
	batch := mvcc.WatchBatch{Revision: w.progress.told.Load(), Err: err}
	var compacted compactedError
	switch {
	case ctx.Err() != nil || errors.Is(err, errEnded):
		return
	case w.store.isClosed():
		w.endClosed(batch.Revision)
		return
	case errors.As(err, &compacted):
		batch.Err, batch.CompactRevision = mvcc.ErrCompacted, compacted.revision
	case transient(err):
		batch.Err = w.store.unavailable(ctx, err)
	}
	select {
	case w.out <- batch:
	case <-ctx.Done():
	case <-w.store.closed:
		w.endClosed(batch.Revision)
	}
}

// endClosed makes ErrClosed the last batch, in place of one that nobody has taken yet if need be: the
// receiver will resume from what it has seen, and Close must not wait for it.
func (w *watcher) endClosed(revision int64) {
	select {
	case <-w.out:
	default:
	}
	w.out <- mvcc.WatchBatch{Revision: revision, Err: raftstore.ErrClosed}
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}
