package grpcserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const maxTestMessage = 1 << 20

type message = wrapperspb.BytesValue

// testService is what the server under test serves. Its client is grpc's own.
type testService struct {
	unary  func(ctx context.Context, m *message) (*message, error)
	stream func(s grpc.ServerStream) error
}

var description = grpc.ServiceDesc{
	ServiceName: "test.Test",
	Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: func(impl any, ctx context.Context, dec func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
		var m message
		if err := dec(&m); err != nil {
			return nil, err
		}
		return impl.(*testService).unary(ctx, &m)
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "Stream", ServerStreams: true, ClientStreams: true, Handler: func(impl any, s grpc.ServerStream) error {
		return impl.(*testService).stream(s)
	}}},
}

// serve returns the server's address.
func serve(t *testing.T, service *testService) (*Server, string) {
	s := New(Config{Codec: encoding.GetCodecV2("proto"), MaxMessageBytes: maxTestMessage})
	s.RegisterService(&description, service)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		require.NoError(t, <-ended)
	})
	return s, l.Addr().String()
}

type client struct{ *grpc.ClientConn }

func connect(t *testing.T, service *testService, options ...grpc.DialOption) client {
	_, address := serve(t, service)
	return dial(t, address, options...)
}

func dial(t *testing.T, address string, options ...grpc.DialOption) client {
	c, err := grpc.NewClient("passthrough:///"+address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return client{c}
}

func (c client) unary(ctx context.Context, value []byte, options ...grpc.CallOption) ([]byte, error) {
	var answer message
	err := c.Invoke(ctx, "/test.Test/Unary", &message{Value: value}, &answer, options...)
	return answer.Value, err
}

func (c client) stream(t *testing.T, ctx context.Context) grpc.ClientStream {
	s, err := c.NewStream(ctx, &description.Streams[0], "/test.Test/Stream")
	require.NoError(t, err)
	return s
}

func echo(_ context.Context, m *message) (*message, error) { return m, nil }

func echoStream(s grpc.ServerStream) error {
	for {
		var m message
		if err := s.RecvMsg(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := s.SendMsg(&m); err != nil {
			return err
		}
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// TestManyCalls: calls of all sizes on one connection get their own answers, with windows of the smallest size and larger ones.
func TestManyCalls(t *testing.T) {
	for name, options := range map[string][]grpc.DialOption{
		"windows that grow": nil,
		"small windows":     {grpc.WithStaticStreamWindowSize(64 << 10), grpc.WithStaticConnWindowSize(64 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, &testService{unary: echo}, options...)
			var group errgroup.Group
			for range 64 {
				group.Go(func() error {
					for range 20 {
						value := randomBytes(1 << rand.IntN(19))
						answer, err := c.unary(t.Context(), value)
						if err != nil {
							return err
						}
						if !bytes.Equal(value, answer) {
							return errors.New("another answer")
						}
					}
					return nil
				})
			}
			require.NoError(t, group.Wait())
		})
	}
}

func TestErrors(t *testing.T) {
	text := "100 % wrong:\n\x01 größer " + strings.Repeat("x", 100)
	c := connect(t, &testService{unary: func(context.Context, *message) (*message, error) {
		return nil, status.Error(codes.FailedPrecondition, text)
	}})
	_, err := c.unary(t.Context(), []byte("v"))
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.Equal(t, text, status.Convert(err).Message())

	for path, want := range map[string]string{
		"/test.Test/Other":  "unknown method Other for service test.Test",
		"/test.Other/Unary": "unknown service test.Other",
	} {
		err := c.Invoke(t.Context(), path, &message{}, &message{})
		require.Equal(t, codes.Unimplemented, status.Code(err))
		require.Equal(t, want, status.Convert(err).Message())
	}
}

func TestEmptyMessages(t *testing.T) {
	c := connect(t, &testService{unary: echo, stream: echoStream})
	answer, err := c.unary(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, answer)
	s := c.stream(t, t.Context())
	require.NoError(t, s.SendMsg(&message{}))
	require.NoError(t, s.RecvMsg(&message{}))
}

func TestRefused(t *testing.T) {
	c := connect(t, &testService{unary: echo, stream: echoStream})
	_, err := c.unary(t.Context(), make([]byte, maxTestMessage))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "received message larger than max")

	_, err = c.unary(t.Context(), []byte("v"), grpc.UseCompressor(gzip.Name))
	require.Equal(t, codes.Unimplemented, status.Code(err))

	s := c.stream(t, t.Context())
	require.NoError(t, s.SendMsg(&message{Value: make([]byte, maxTestMessage)}))
	require.Equal(t, codes.ResourceExhausted, status.Code(s.RecvMsg(&message{})))

	_, err = c.unary(t.Context(), []byte("the connection is as good as before"))
	require.NoError(t, err)
}

// TestContext: a call knows its metadata and its client, and ends with its deadline or when the client cancels it.
func TestContext(t *testing.T) {
	began, ended := make(chan context.Context, 1), make(chan error, 1)
	c := connect(t, &testService{unary: func(ctx context.Context, _ *message) (*message, error) {
		began <- ctx
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}})
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "who", "me"))
	go func() { _, _ = c.unary(ctx, nil) }()
	call := <-began
	require.Equal(t, []string{"me"}, metadata.ValueFromIncomingContext(call, "who"))
	p, ok := peer.FromContext(call)
	require.True(t, ok)
	require.Equal(t, "127.0.0.1", p.Addr.(*net.TCPAddr).IP.String())
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.unary(ctx, nil)
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.Error(t, <-ended) // by the deadline, or by the client who gave up
	_, ok = (<-began).Deadline()
	require.True(t, ok)
}

// TestStream: a stream carries far more than its windows, in both directions, in order, and ends with what the call returns.
func TestStream(t *testing.T) {
	const messages, size = 300, 40 << 10
	end := status.Error(codes.Aborted, "enough")
	c := connect(t, &testService{stream: func(s grpc.ServerStream) error {
		if err := echoStream(s); err != nil {
			return err
		}
		return end
	}}, grpc.WithStaticStreamWindowSize(64<<10))
	s := c.stream(t, t.Context())
	var group errgroup.Group
	group.Go(func() error {
		for i := range messages {
			if err := s.SendMsg(&message{Value: bytes.Repeat([]byte{byte(i)}, size)}); err != nil {
				return err
			}
		}
		return s.CloseSend()
	})
	for i := range messages {
		var m message
		require.NoError(t, s.RecvMsg(&m))
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, size), m.Value)
	}
	require.NoError(t, group.Wait())
	require.Equal(t, end.Error(), s.RecvMsg(&message{}).Error())
}

// TestSlowReader: who does not read a stream holds up neither memory nor other calls.
func TestSlowReader(t *testing.T) {
	const messages, size = 200, 32 << 10
	sent := make(chan int, messages)
	c := connect(t, &testService{unary: echo, stream: func(s grpc.ServerStream) error {
		for i := range messages {
			if err := s.SendMsg(&message{Value: make([]byte, size)}); err != nil {
				return err
			}
			sent <- i
		}
		return nil
	}}, grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(1<<20))
	s := c.stream(t, t.Context())
	require.Equal(t, 0, <-sent)
	for range 100 {
		_, err := c.unary(t.Context(), make([]byte, 1000))
		require.NoError(t, err)
	}
	require.Less(t, len(sent), (64<<10+muchBytes)/size+1)
	for range messages {
		require.NoError(t, s.RecvMsg(&message{}))
	}
	require.ErrorIs(t, s.RecvMsg(&message{}), io.EOF)
}

// TestClose: calls and streams end with the server.
func TestClose(t *testing.T) {
	began := make(chan struct{}, 2)
	server, address := serve(t, &testService{
		unary: func(ctx context.Context, _ *message) (*message, error) {
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
		stream: func(s grpc.ServerStream) error {
			began <- struct{}{}
			return echoStream(s)
		},
	})
	c := dial(t, address)
	s := c.stream(t, t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.unary(t.Context(), nil)
		failed <- err
	}()
	<-began
	<-began
	server.Close()
	require.Equal(t, codes.Unavailable, status.Code(<-failed))
	require.Equal(t, codes.Unavailable, status.Code(s.RecvMsg(&message{})))
}
