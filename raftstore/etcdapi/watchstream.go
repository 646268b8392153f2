package etcdapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"kontiki/mvcc"
)

// watchServer serves streams of watches.
type watchServer struct {
	pb.UnimplementedWatchServer
	*Server
}

// watchStream is one gRPC stream with any number of watches on it.
//
//	client ── create, cancel, progress? ──► receive ── answers ──┐
//	                                                             ├──► stream ──► client
//	mvcc ── batches, in a goroutine for each watch ── take ──────┘
//
// What is sent first comes first to the client. Who sends to a client that does not read waits, without
// holding up the store (mvcc/watch.go) or other streams.
type watchStream struct {
	*Server
	stream pb.Watch_WatchServer // several goroutines send at a time, which grpcserver allows
	fail   chan error           // room for one: what ends the stream

	mu       sync.Mutex // guards everything below, and watch.seen and watch.idle
	watches  map[int64]*watch
	nextID   int64
	progress int64 // somebody asked for progress when this was the newest revision; 0 if nobody waits
}

// noWatch is the id in an answer that is about no watch, or about all of a stream.
const noWatch = -1

// Watch implements pb.WatchServer.
func (s *watchServer) Watch(stream pb.Watch_WatchServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel() // and with it all watches
	ws := &watchStream{Server: s.Server, stream: stream, fail: make(chan error, 1), watches: map[int64]*watch{}}
	// receive ends when gRPC ends the stream, which is after this function has returned.
	go ws.receive(ctx)

	tick := time.NewTicker(s.config.ProgressInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			ws.periodicProgress()
		case err := <-ws.fail:
			return err
		case <-ctx.Done():
			return rpctypes.ErrGRPCWatchCanceled
		}
	}
}

// send sends a response; false if the stream has ended.
func (ws *watchStream) send(r *pb.WatchResponse) bool { return ws.stream.Send(r) == nil }

// end ends the stream with an error; the first one counts.
func (ws *watchStream) end(err error) {
	select {
	case ws.fail <- err:
	default:
	}
}

func (ws *watchStream) receive(ctx context.Context) {
	for {
		r, err := ws.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return // the client asks for nothing more; its watches go on
		case err != nil:
			ws.end(err)
			return
		}
		switch v := r.RequestUnion.(type) {
		case *pb.WatchRequest_CreateRequest:
			if v.CreateRequest != nil {
				ws.create(ctx, v.CreateRequest)
			}
		case *pb.WatchRequest_CancelRequest:
			if v.CancelRequest != nil {
				ws.cancel(v.CancelRequest.WatchId)
			}
		case *pb.WatchRequest_ProgressRequest:
			ws.requestProgress()
		}
	}
}

// create starts a watch. The answer that it was created goes before its first event.
func (ws *watchStream) create(ctx context.Context, r *pb.WatchCreateRequest) {
	if len(r.Key) == 0 {
		r.Key = []byte{0}
	}
	// A watch without a start sees all that comes after the revision in the answer.
	now := ws.member.LocalRevision()
	answer := &pb.WatchResponse{Header: ws.header.at(now), WatchId: noWatch, Created: true}
	reason := refuseWatch(r)
	if reason == "" {
		if w := ws.add(ctx, r); w != nil {
			answer.WatchId = w.id
			ws.send(answer)
			w.start(now)
			return
		}
		reason = reasonDuplicateWatch
	}
	answer.Canceled, answer.CancelReason = true, reason
	ws.send(answer)
}

// refuseWatch says why a watch cannot be; empty if it can.
func refuseWatch(r *pb.WatchCreateRequest) string {
	if r.StartRevision < 0 {
		return rpctypes.ErrCompacted.Error()
	}
	openEnded := len(r.RangeEnd) == 1 && r.RangeEnd[0] == 0
	if len(r.RangeEnd) > 0 && !openEnded && bytes.Compare(r.Key, r.RangeEnd) >= 0 {
		return reasonEmptyRange
	}
	return ""
}

// add makes a watch with the id that is asked for, or the next that is free; nil if it is taken.
func (ws *watchStream) add(ctx context.Context, r *pb.WatchCreateRequest) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	id := r.WatchId
	if id == 0 {
		for ws.watches[ws.nextID] != nil {
			ws.nextID++
		}
		id = ws.nextID
		ws.nextID++
	} else if ws.watches[id] != nil {
		return nil
	}
	w := &watch{stream: ws, id: id, req: r}
	w.ctx, w.cancel = context.WithCancel(ctx)
	ws.watches[id] = w
	return w
}

// cancel ends a watch. Nothing of it comes after the answer.
func (ws *watchStream) cancel(id int64) {
	w := ws.take(id)
	if w == nil {
		return // etcd does not answer either
	}
	w.cancel()
	<-w.done
	ws.send(&pb.WatchResponse{Header: ws.header.now(), WatchId: id, Canceled: true})
	ws.answerProgress() // it may have been the one that was behind
}

// take takes a watch off the list.
func (ws *watchStream) take(id int64) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.watches[id]
	delete(ws.watches, id)
	return w
}

// watchRequest is what the store is asked for. Every watch asks for progress, so that the stream knows
// how far it has come.
func watchRequest(r *pb.WatchCreateRequest, now int64) mvcc.WatchRequest {
	req := mvcc.WatchRequest{
		Key: r.Key, End: r.RangeEnd, StartRevision: r.StartRevision,
		PrevKV: r.PrevKv, PartialPrevKV: true, Progress: true,
	}
	if req.StartRevision == 0 {
		req.StartRevision = now + 1
	}
	for _, f := range r.Filters {
		req.NoPut = req.NoPut || f == pb.WatchCreateRequest_NOPUT
		req.NoDelete = req.NoDelete || f == pb.WatchCreateRequest_NODELETE
	}
	return req
}
