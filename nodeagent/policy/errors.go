package policy

import "errors"

// ErrNotWritten says that the rules of a pod could not be written: it must not start.
var ErrNotWritten = errors.New("policy: rules of the pod could not be written")
