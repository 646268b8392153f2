package simulated

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrNotFound answers calls that name a sandbox or container the runtime does not have.
var ErrNotFound = status.Error(codes.NotFound, "not found")

// ErrOnlyStatus answers exec, attach and port-forward.
var ErrOnlyStatus = status.Error(codes.FailedPrecondition,
	"this is a simulated node: its containers exist only as status, so there is no process to talk to")
