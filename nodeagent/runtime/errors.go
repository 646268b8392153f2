package runtime

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kontiki/nodeagent/image"
)

var (
	// ErrNotFound: there is no sandbox or container with that id.
	ErrNotFound = errors.New("not found")
	// ErrState: the sandbox or container is not in a state that allows this.
	ErrState = errors.New("wrong state")
	// ErrInvalid: the request contradicts itself or the machine.
	ErrInvalid = errors.New("invalid request")
	// ErrUnsupported: this runtime cannot do that (yet).
	ErrUnsupported = errors.New("not supported")
	// ErrInUse: another process has a runtime on the same state directory.
	ErrInUse = errors.New("state directory is in use")
	// ErrClosed: the runtime is shutting down.
	ErrClosed = errors.New("runtime is closed")
)

// grpcCodes says which code an error becomes; the first match counts.
var grpcCodes = []struct {
	err  error
	code codes.Code
}{
	{ErrNotFound, codes.NotFound},
	{image.ErrNotFound, codes.NotFound},
	{ErrState, codes.FailedPrecondition},
	{ErrInvalid, codes.InvalidArgument},
	{image.ErrBadReference, codes.InvalidArgument},
	{ErrUnsupported, codes.Unimplemented},
	{ErrClosed, codes.Unavailable},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
	{context.Canceled, codes.Canceled},
}

// toStatus turns any error of this package into a gRPC status.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	for _, c := range grpcCodes {
		if errors.Is(err, c.err) {
			return status.Error(c.code, err.Error())
		}
	}
	return status.Error(codes.Unknown, err.Error())
}

// statusInterceptor applies toStatus to every call, on the socket and in process alike.
func statusInterceptor(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	resp, err := next(ctx, req)
	return resp, toStatus(err)
}
