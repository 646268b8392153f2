package etcdapi

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"kontiki/raftstore"
)

// What happens to every call: a call that wants a leader (clientv3's WithRequireLeader) is refused, or ended, while there
// is none; and it is noted who calls, once for all calls of a connection that have the same headers.

const (
	leaderPoll = 500 * time.Millisecond
	// leaderMisses is how often in a row there is no leader before streams that want one are ended.
	leaderMisses = 3
)

func (s *Server) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if wantsLeader(ctx) && !s.member.HasLeader() {
		return nil, rpctypes.ErrGRPCNoLeader
	}
	return handle(ctx, req)
}

func (s *Server) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx := stream.Context()
	if !wantsLeader(ctx) {
		return handle(srv, stream)
	}
	if !s.member.HasLeader() {
		return rpctypes.ErrGRPCNoLeader
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go s.watchLeader(ctx, cancel)
	err := handle(srv, streamWith{stream, ctx})
	if errors.Is(context.Cause(ctx), rpctypes.ErrGRPCNoLeader) {
		return rpctypes.ErrGRPCNoLeader
	}
	return err
}

// watchLeader ends a call when there has been no leader for a while.
func (s *Server) watchLeader(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(leaderPoll)
	defer tick.Stop()
	for misses := 0; misses < leaderMisses; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if misses++; s.member.HasLeader() {
			misses = 0
		}
	}
	cancel(rpctypes.ErrGRPCNoLeader)
}

// streamWith is a stream with another context.
type streamWith struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s streamWith) Context() context.Context { return s.ctx }

func wantsLeader(ctx context.Context) bool {
	values := metadata.ValueFromIncomingContext(ctx, rpctypes.MetadataRequireLeaderKey)
	return len(values) > 0 && values[0] == rpctypes.MetadataHasLeader
}

// withOrigin says who calls: the name in the client's certificate, and the client's program.
func withOrigin(ctx context.Context) context.Context {
	o := raftstore.Origin{User: "anonymous"}
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(t.State.PeerCertificates) > 0 {
			o.User = t.State.PeerCertificates[0].Subject.CommonName
		}
	}
	if agent := metadata.ValueFromIncomingContext(ctx, "user-agent"); len(agent) > 0 {
		o.UserAgent = agent[0]
	}
	return raftstore.WithOrigin(ctx, o)
}
