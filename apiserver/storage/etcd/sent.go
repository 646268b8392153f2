package etcd

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sent notes whether a request may have reached the server: whether gRPC has handed its message to a
// connection. A request that failed before cannot have happened, whatever the error's code.
type sent struct{ atomic.Bool }

type sentKey struct{}

// watch returns a context for the request that s is about.
func (s *sent) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, s)
}

// sentHandler tells the sent of each request. gRPC reports OutPayload in the goroutine of the caller,
// once the message is queued for a connection and before it waits for the answer.
type sentHandler struct{}

// HandleRPC implements stats.Handler.
func (sentHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.OutPayload); !ok {
		return
	}
	if s, ok := ctx.Value(sentKey{}).(*sent); ok {
		s.Store(true)
	}
}

// TagRPC, TagConn and HandleConn implement stats.Handler.
func (sentHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sentHandler) HandleConn(context.Context, stats.ConnStats)                       {}
