package etcdapi

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"kontiki/mvcc"
)

// watch is one watch of a stream.
type watch struct {
	stream *watchStream
	id     int64
	req    *pb.WatchCreateRequest
	ctx    context.Context // ends with the watch
	cancel context.CancelFunc
	done   <-chan struct{} // closed when nothing of the watch comes any more; receive alone uses it

	seen int64 // everything up to here was sent; 0 while the watch begins in the future
	idle bool  // no event since the last periodic progress
}

// start runs the watch; now is the revision that its client was told.
func (w *watch) start(now int64) {
	w.done = w.stream.member.WatchFunc(w.ctx, watchRequest(w.req, now), w.take)
}

// take is called by the store with each batch; false ends the watch.
func (w *watch) take(b mvcc.WatchBatch) bool {
	if b.Err != nil {
		w.fail(b)
		w.cancel()
		return false
	}
	if len(b.Events) > 0 && !w.deliver(b) {
		return false
	}
	w.saw(b)
	w.stream.answerProgress()
	return true
}

// deliver sends the events of a batch, in parts if the client can have them so.
func (w *watch) deliver(b mvcc.WatchBatch) bool {
	r := &pb.WatchResponse{Header: w.stream.header.at(b.Revision), WatchId: w.id}
	for _, e := range b.Events {
		r.Events = append(r.Events, event(e))
	}
	if !w.req.Fragment {
		return w.stream.send(r)
	}
	for _, part := range fragments(r, w.stream.config.MaxRequestBytes+overheadBytes) {
		if !w.stream.send(part) {
			return false
		}
	}
	return true
}

// fragments splits a response into parts below limit bytes, of one event at least; all but the last say
// that there are more.
func fragments(r *pb.WatchResponse, limit int) (parts []*pb.WatchResponse) {
	if proto.Size(r) < limit {
		return []*pb.WatchResponse{r}
	}
	part := func() *pb.WatchResponse {
		return &pb.WatchResponse{Header: r.Header, WatchId: r.WatchId, Fragment: true}
	}
	empty := proto.Size(part())
	current, size := part(), empty
	for _, e := range r.Events {
		n := eventSize(e)
		if len(current.Events) > 0 && size+n >= limit {
			parts = append(parts, current)
			current, size = part(), empty
		}
		current.Events = append(current.Events, e)
		size += n
	}
	current.Fragment = false
	return append(parts, current)
}

// eventSize is what an event takes in a response, with its tag and a length of at most four bytes.
func eventSize(e *mvccpb.Event) int { return proto.Size(e) + 5 }

// fail tells the client why the watch ends.
func (w *watch) fail(b mvcc.WatchBatch) {
	ws := w.stream
	if errors.Is(b.Err, mvcc.ErrClosed) {
		ws.end(toStatus(b.Err)) // the member is closing; clients go on elsewhere
		return
	}
	if ws.take(w.id) == nil {
		return // it is being canceled anyway
	}
	r := &pb.WatchResponse{Header: ws.header.at(b.Revision), WatchId: w.id, Canceled: true, CompactRevision: b.CompactRevision}
	if !errors.Is(b.Err, mvcc.ErrCompacted) {
		r.CancelReason = b.Err.Error()
	}
	ws.send(r)
	ws.answerProgress()
}

// saw notes how far the watch has come.
func (w *watch) saw(b mvcc.WatchBatch) {
	w.stream.mu.Lock()
	defer w.stream.mu.Unlock()
	if b.Revision >= w.req.StartRevision {
		w.seen = b.Revision
	}
	if len(b.Events) > 0 {
		w.idle = false
	}
}

func (w *watch) seenNow() int64 {
	w.stream.mu.Lock()
	defer w.stream.mu.Unlock()
	return w.seen
}
