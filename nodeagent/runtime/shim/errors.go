package shim

import "errors"

var (
	// ErrGone: the shim does not answer; it has exited or was killed.
	ErrGone = errors.New("shim is gone")
	// ErrStart: runc could not start the container or process; the text after it is runc's.
	ErrStart = errors.New("start failed")
)
