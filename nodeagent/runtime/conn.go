package runtime

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Conn is a connection to this runtime for CRI clients in the same process. It calls the
// service handlers directly: no socket, no encoding. Messages are copied on the way, so
// that neither side sees the other's changes.
func (r *Runtime) Conn() grpc.ClientConnInterface { return localConn{r} }

type localConn struct{ r *Runtime }

// service finds the description behind a method like "/runtime.v1.RuntimeService/Version".
func service(fullMethod string) (*grpc.ServiceDesc, string) {
	name, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	for _, desc := range []*grpc.ServiceDesc{&runtimeapi.RuntimeService_ServiceDesc, &runtimeapi.ImageService_ServiceDesc} {
		if desc.ServiceName == name {
			return desc, method
		}
	}
	return &grpc.ServiceDesc{}, method
}

// Invoke makes a unary call (grpc.ClientConnInterface).
func (c localConn) Invoke(ctx context.Context, fullMethod string, args, reply any, _ ...grpc.CallOption) error {
	desc, name := service(fullMethod)
	for _, m := range desc.Methods {
		if m.MethodName != name {
			continue
		}
		decode := func(in any) error { return copyMessage(in, args) }
		out, err := m.Handler(c.r, ctx, decode, statusInterceptor)
		if err != nil {
			return err
		}
		return copyMessage(reply, out)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", fullMethod)
}

func copyMessage(dst, src any) error {
	to, ok1 := dst.(proto.Message)
	from, ok2 := src.(proto.Message)
	if !ok1 || !ok2 {
		return fmt.Errorf("no protobuf message: %T, %T", dst, src)
	}
	proto.Merge(to, from)
	return nil
}

// NewStream begins a server-streaming call, the only kind that CRI has.
func (c localConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, fullMethod string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	desc, name := service(fullMethod)
	for _, d := range desc.Streams {
		if d.StreamName == name {
			ctx, cancel := context.WithCancel(ctx)
			return &localStream{ctx: ctx, cancel: cancel, srv: c.r, handler: d.Handler, out: make(chan proto.Message), header: make(chan struct{})}, nil
		}
	}
	return nil, status.Errorf(codes.Unimplemented, "unknown method %s", fullMethod)
}

// localStream is both ends of one server-streaming call: the client sends one request, the
// handler runs in a goroutine that ends with it or with the context (an RPC's own, which gRPC's
// stream types must carry), and answers pass one by one.
type localStream struct {
	ctx     context.Context
	cancel  context.CancelFunc
	srv     *Runtime
	handler grpc.StreamHandler
	request any
	out     chan proto.Message
	header  chan struct{} // closed by SendHeader, or at the end
	once    sync.Once     // closes header
	err     error         // the handler's; set before out closes
}

func (s *localStream) Context() context.Context { return s.ctx }
func (s *localStream) Trailer() metadata.MD     { return nil }

// Header waits until the handler has begun in earnest, as over a network.
func (s *localStream) Header() (metadata.MD, error) {
	select {
	case <-s.header:
		return nil, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *localStream) sendHeader() { s.once.Do(func() { close(s.header) }) }

// SendMsg is the client's one request.
func (s *localStream) SendMsg(m any) error {
	s.request = m
	return nil
}

// CloseSend ends the request: the handler starts.
func (s *localStream) CloseSend() error {
	go func() {
		defer close(s.out)
		defer s.sendHeader()
		s.err = toStatus(s.handler(s.srv, localServerStream{s}))
	}()
	return nil
}

// RecvMsg is the client's next answer, io.EOF at the end.
func (s *localStream) RecvMsg(m any) error {
	msg, ok := <-s.out
	if ok {
		return copyMessage(m, msg)
	}
	s.cancel()
	if s.err != nil {
		return s.err
	}
	return io.EOF
}

// localServerStream is the handler's view.
type localServerStream struct{ s *localStream }

func (localServerStream) SetHeader(metadata.MD) error { return nil }
func (localServerStream) SetTrailer(metadata.MD)      {}
func (ss localServerStream) Context() context.Context { return ss.s.ctx }
func (ss localServerStream) RecvMsg(m any) error      { return copyMessage(m, ss.s.request) }

func (ss localServerStream) SendHeader(metadata.MD) error {
	ss.s.sendHeader()
	return nil
}

func (ss localServerStream) SendMsg(m any) error {
	ss.s.sendHeader()
	select {
	case ss.s.out <- proto.Clone(m.(proto.Message)):
		return nil
	case <-ss.s.ctx.Done():
		return ss.s.ctx.Err()
	}
}
