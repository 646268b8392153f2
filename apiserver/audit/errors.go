package audit

import "errors"

// ErrPolicy: a policy's file says something that is no policy. The error that wraps it says where.
var ErrPolicy = errors.New("invalid audit policy")

// ErrFull: a buffer had no room for an event.
var ErrFull = errors.New("the audit buffer is full")
