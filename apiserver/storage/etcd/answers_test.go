package etcd_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kontiki/apiserver/storage/etcd"
	"kontiki/mvcc"
	"kontiki/raftstore"
)

// answering is a server that says what it is told to say: answers that a real etcd gives only at moments
// that a test cannot choose.
type answering struct {
	pb.UnimplementedKVServer
	answer atomic.Pointer[error] // to the first request; those after it succeed
	asked  atomic.Int64
}

func (a *answering) say(err error) {
	a.asked.Store(0)
	a.answer.Store(&err)
}

func (a *answering) next() error {
	if a.asked.Add(1) == 1 {
		return *a.answer.Load()
	}
	return nil
}

func (a *answering) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 7}}, a.next()
}

func (a *answering) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 7}}, a.next()
}

func openAnswering(t *testing.T) (*etcd.Store, *answering) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	server, a := grpc.NewServer(), &answering{}
	pb.RegisterKVServer(server, a)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-done)
	})
	return openURL(t, etcd.Config{Endpoints: []string{"http://" + listener.Addr().String()}, RequestTimeout: 10 * time.Second}), a
}

func TestAnswers(t *testing.T) {
	store, server := openAnswering(t)
	for _, c := range []struct {
		answer  error
		write   error // what Txn says of it, nil if it asks again
		reading error // what Range says of it, nil if it asks again
	}{
		// The write may have happened. clientv3 by itself would send it again after the first two.
		{rpctypes.ErrGRPCCanceled, raftstore.ErrUnknownOutcome, nil},
		{rpctypes.ErrGRPCDeadlineExceeded, raftstore.ErrUnknownOutcome, nil},
		{rpctypes.ErrGRPCTimeout, raftstore.ErrUnknownOutcome, nil},
		{rpctypes.ErrGRPCTimeoutDueToLeaderFail, raftstore.ErrUnknownOutcome, nil},
		{rpctypes.ErrGRPCTimeoutDueToConnectionLost, raftstore.ErrUnknownOutcome, nil},
		{rpctypes.ErrGRPCLeaderChanged, raftstore.ErrUnknownOutcome, nil},
		{rpctypes.ErrGRPCStopped, raftstore.ErrUnknownOutcome, nil},
		{status.Error(codes.Unknown, "raft proposal dropped"), raftstore.ErrUnknownOutcome, nil},
		{status.Error(codes.Internal, "stream terminated"), raftstore.ErrUnknownOutcome, status.Error(codes.Internal, "stream terminated")},
		// It did not happen, and may go through in a moment.
		{rpctypes.ErrGRPCNoLeader, nil, nil},
		{rpctypes.ErrGRPCRequestTooManyRequests, nil, nil},
		// It did not happen.
		{rpctypes.ErrGRPCNoSpace, raftstore.ErrNoSpace, raftstore.ErrNoSpace},
		{rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCPermissionDenied},
		{rpctypes.ErrGRPCRequestTooLarge, raftstore.ErrTooLarge, raftstore.ErrTooLarge},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (3 vs. 2)"), raftstore.ErrTooLarge, raftstore.ErrTooLarge},
		{rpctypes.ErrGRPCTooManyOps, mvcc.ErrTooManyOps, mvcc.ErrTooManyOps},
		{rpctypes.ErrGRPCCompacted, mvcc.ErrCompacted, mvcc.ErrCompacted},
	} {
		t.Run(status.Convert(c.answer).Message(), func(t *testing.T) {
			check := func(want, err error) {
				if want == nil {
					require.NoError(t, err)
					require.EqualValues(t, 2, server.asked.Load())
					return
				}
				require.ErrorIs(t, err, want)
				require.EqualValues(t, 1, server.asked.Load())
			}
			server.say(c.answer)
			_, err := store.Txn(t.Context(), put("k"))
			check(c.write, err)
			server.say(c.answer)
			_, err = store.Txn(t.Context(), mvcc.TxnRequest{})
			check(c.reading, err)
			server.say(c.answer)
			_, err = store.Range(t.Context(), mvcc.RangeRequest{Key: []byte("k")})
			check(c.reading, err)
		})
	}
}

func TestRequestThatIsTooLargeIsNotSent(t *testing.T) {
	store, server := openAnswering(t)
	server.say(nil)
	request := put("k")
	request.Then[0].Put.Value = make([]byte, 3<<20)
	_, err := store.Txn(t.Context(), request)
	require.ErrorIs(t, err, raftstore.ErrTooLarge)
	require.Zero(t, server.asked.Load())
}
