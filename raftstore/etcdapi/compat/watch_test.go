package compat

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// watching is one stream of watches.
type watching struct {
	s      *session
	stream pb.Watch_WatchClient
	answer chan *pb.WatchResponse
}

func (s *session) watching() *watching {
	stream, err := s.watch.Watch(s.ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32))
	require.NoError(s, err)
	w := &watching{s: s, stream: stream, answer: make(chan *pb.WatchResponse)}
	go func() {
		defer close(w.answer)
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			w.answer <- r
		}
	}()
	return w
}

func (w *watching) next() *pb.WatchResponse {
	w.s.Helper()
	select {
	case r, ok := <-w.answer:
		require.True(w.s, ok, "stream has ended")
		return r
	case <-time.After(20 * time.Second):
		w.s.Fatalf("watch is silent; so far:\n%s", w.s.transcript.String())
		return nil
	}
}

// create starts a watch and notes the answer. Without a start, its revision is noted too.
func (w *watching) create(key, end string, change ...func(*pb.WatchCreateRequest)) int64 {
	w.s.Helper()
	r := &pb.WatchCreateRequest{Key: []byte(key), RangeEnd: []byte(end)}
	for _, f := range change {
		f(r)
	}
	require.NoError(w.s, w.stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}}))
	a := w.next()
	w.s.told("watch "+text(r), a, nil)
	return a.WatchId
}

func (w *watching) cancel(id int64) {
	w.s.Helper()
	require.NoError(w.s, w.stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}))
}

func (w *watching) askProgress() {
	w.s.Helper()
	require.NoError(w.s, w.stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}))
}

// events notes n events, however they come in responses, and checks that the header of each response is
// not behind them.
func (w *watching) events(n int) {
	w.s.Helper()
	for seen := 0; seen < n; {
		r := w.next()
		if len(r.Events) == 0 {
			w.s.told("instead of an event", r, nil)
			return
		}
		for _, e := range r.Events {
			require.GreaterOrEqual(w.s, r.Header.Revision, e.Kv.ModRevision)
			w.s.note("watch %d: %s", r.WatchId, text(e))
			seen++
		}
	}
}

// quiet checks that nothing came of a watch: another one, on a key of its own, is next.
func (w *watching) quiet() {
	w.s.Helper()
	w.create("quiet", "")
	w.s.put("quiet", "now")
	w.events(1)
}

func from(rev int64) func(*pb.WatchCreateRequest) {
	return func(r *pb.WatchCreateRequest) { r.StartRevision = rev }
}

func prevKV(r *pb.WatchCreateRequest) { r.PrevKv = true }

func TestWatchEvents(t *testing.T) {
	both(t, func(s *session) {
		granted, err := s.lease.LeaseGrant(s.ctx, &pb.LeaseGrantRequest{ID: 5, TTL: 1000})
		s.told("grant", granted, err)
		s.put("a", "1")
		s.put("b", "1", func(r *pb.PutRequest) { r.Lease = 5 })
		w := s.watching()
		w.create("a", "c", from(2), prevKV)
		w.events(2)
		s.put("a", "2")
		w.events(1)
		s.txn(then(putOp("a", "3"), deleteOp("b", ""), putOp("b1", "1"), putOp("z", "1")))
		w.events(3)
		s.del("a", "z")
		w.events(2)
		s.put("a", "reborn")
		w.events(1)
		for _, c := range []struct {
			filters []pb.WatchCreateRequest_FilterType
			events  int
		}{
			{[]pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}, 7},
			{[]pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT}, 3},
			{[]pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE, pb.WatchCreateRequest_NOPUT}, 0},
			{[]pb.WatchCreateRequest_FilterType{7}, 10},
		} {
			w := s.watching()
			w.create("a", "", from(90)) // nothing comes of it
			w.create("a", "\x00", from(1), func(r *pb.WatchCreateRequest) { r.Filters = c.filters })
			w.events(c.events)
		}
	})
}

func TestWatchIDsAndCancels(t *testing.T) {
	both(t, func(s *session) {
		w := s.watching()
		id := func(n int64) func(*pb.WatchCreateRequest) {
			return func(r *pb.WatchCreateRequest) { r.WatchId = n }
		}
		w.create("a", "")
		w.create("a", "", id(2))
		w.create("a", "", id(2))
		w.create("a", "")
		w.create("a", "")
		w.create("a", "", from(-1))
		w.create("b", "a")
		w.create("a", "a")
		w.create("", "")
		w.create("", "\x00")
		w.cancel(99) // nothing comes of it
		for _, n := range []int64{0, 1, 2, 3, 4, 5} {
			w.cancel(n)
			s.told("canceled", w.next(), nil)
		}
		s.put("a", "1")
		w.quiet()
		w.create("a", "", id(2))
		w.create("a", "", from(1))
		w.events(1)
	})
}

func TestWatchCompacted_KV01_KV17(t *testing.T) {
	both(t, func(s *session) {
		for i := range 3 {
			s.put("k", fmt.Sprint(i))
		}
		s.del("k", "") // revision 5
		s.compact(5)
		s.put("k", "again")
		for _, flags := range []func(*pb.WatchCreateRequest){func(*pb.WatchCreateRequest) {}, prevKV} {
			for rev := int64(0); rev <= 7; rev++ {
				w := s.watching()
				w.create("k", "", from(rev), flags)
				switch {
				case rev == 0 || rev == 7:
					w.quiet()
				case rev < 5:
					r := w.next()
					r.Header.Revision = 0 // etcd does not say what the newest revision is
					s.told("compacted", r, nil)
					w.quiet()
				case rev == 5:
					w.events(2)
				default:
					w.events(1)
				}
			}
		}
	})
}

func TestWatchProgress_KV09(t *testing.T) {
	both(t, func(s *session) {
		s.put("other", "1")
		w := s.watching()
		w.create("quiet", "", from(2))
		w.create("a", "b", prevKV)
		progress := func() {
			// etcd drops the request if a watch is not synced yet, so it is asked until there is an answer.
			for {
				w.askProgress()
				select {
				case r := <-w.answer:
					s.told("progress", r, nil)
					return
				case <-time.After(2 * time.Second):
				}
			}
		}
		progress()
		s.put("other", "2")
		progress()
		s.put("a", "1")
		w.events(1)
		progress()
	})
}

func TestWatchFragments(t *testing.T) {
	both(t, func(s *session) {
		var ops []*pb.RequestOp
		for round := range 3 { // three transactions of 1.4 MB each
			ops = nil
			for i := range 14 {
				op := putOp(fmt.Sprintf("k%02d", i), string(bytes.Repeat([]byte{byte('a' + round)}, 100_000)))
				op.GetRequestPut().PrevKv = false
				ops = append(ops, op)
			}
			_, err := s.kv.Txn(s.ctx, then(ops...))
			require.NoError(s, err)
		}
		for _, fragment := range []bool{false, true} {
			w := s.watching()
			w.create("k", "l", from(2), func(r *pb.WatchCreateRequest) { r.Fragment = fragment }, prevKV)
			last := int64(0)
			for events := 0; events < 3*14; {
				r := w.next()
				require.Equal(s, fragment && r.Fragment, r.Fragment)
				if fragment {
					require.Less(s, sizeOf(r), 2<<20)
				}
				for _, e := range r.Events {
					s.note("%s at %d after %d", e.Kv.Key, e.Kv.ModRevision, e.GetPrevKv().GetModRevision())
				}
				events += len(r.Events)
				if last = r.Events[len(r.Events)-1].Kv.ModRevision; events == 3*14 {
					require.False(s, r.Fragment, "the last part says that it is the last")
				}
			}
			require.EqualValues(s, 4, last)
		}
	})
}

func sizeOf(r *pb.WatchResponse) (n int) {
	for _, e := range r.Events {
		n += len(e.Kv.Value) + len(e.GetPrevKv().GetValue())
	}
	return n
}
