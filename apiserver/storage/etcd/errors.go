package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kontiki/mvcc"
	"kontiki/raftstore"
)

// UnavailableError says that no endpoint could answer for as long as the request waited, or that a watch
// was cut off. Nothing was changed. It is a raftstore.ErrNoLeader to whoever asks only whether to try again later.
type UnavailableError struct {
	Endpoints []string
	Reason    string // what the last attempt ran into
	Err       error  // the context's error if the caller's time was up, else nil
}

// Error names the endpoints.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("etcd at %s cannot answer: %s", strings.Join(e.Endpoints, ", "), e.Reason)
}

// Is makes it a raftstore.ErrNoLeader.
func (e *UnavailableError) Is(target error) bool { return target == raftstore.ErrNoLeader }

// Unwrap makes it the context's error too.
func (e *UnavailableError) Unwrap() error { return e.Err }

// sentinels are the errors of etcd that the store's users know by another name.
var sentinels = map[error]error{
	rpctypes.ErrCompacted:       mvcc.ErrCompacted,
	rpctypes.ErrFutureRev:       mvcc.ErrFutureRevision,
	rpctypes.ErrDuplicateKey:    mvcc.ErrDuplicateKey,
	rpctypes.ErrEmptyKey:        mvcc.ErrEmptyKey,
	rpctypes.ErrKeyNotFound:     mvcc.ErrKeyNotFound,
	rpctypes.ErrValueProvided:   mvcc.ErrValueProvided,
	rpctypes.ErrLeaseProvided:   mvcc.ErrLeaseProvided,
	rpctypes.ErrLeaseNotFound:   mvcc.ErrLeaseNotFound,
	rpctypes.ErrTooManyOps:      mvcc.ErrTooManyOps,
	rpctypes.ErrRequestTooLarge: raftstore.ErrTooLarge,
	rpctypes.ErrNoSpace:         raftstore.ErrNoSpace,
}

// translate gives an error of a call its name here. What has none stays as it is.
func translate(err error) error {
	if known, ok := sentinels[rpctypes.Error(err)]; ok {
		return known
	}
	if status.Code(err) == codes.ResourceExhausted && rpctypes.Error(err) == err {
		// Not etcd but gRPC, on either side: a message is larger than what that side sends or takes.
		return fmt.Errorf("%w: %s", raftstore.ErrTooLarge, rpctypes.ErrorDesc(err))
	}
	return fmt.Errorf("etcd: %w", err)
}

// refused reports whether an answer means that etcd has looked at the request and not carried it out.
// It does not hold for codes that also stand for a lost connection or a wait that was given up.
func refused(err error) bool {
	if errors.Is(rpctypes.Error(err), rpctypes.ErrNoLeader) {
		return true // said before the request is looked at: see clientv3.WithRequireLeader
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.OutOfRange, codes.ResourceExhausted, codes.FailedPrecondition,
		codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

// transient reports whether the same request may fare better in a moment, perhaps at another endpoint.
func transient(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown:
		return true
	}
	return errors.Is(rpctypes.Error(err), rpctypes.ErrTooManyRequests)
}

// unavailable is the error of a request that changed nothing and whose time is up.
func (s *Store) unavailable(ctx context.Context, last error) error {
	return &UnavailableError{Endpoints: s.config.Endpoints, Reason: rpctypes.ErrorDesc(last), Err: ctx.Err()}
}
