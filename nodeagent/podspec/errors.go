package podspec

import "errors"

// ErrRunAsRoot means that runAsNonRoot is set and the container would run as uid 0, or as a named
// user whose uid nobody can tell.
var ErrRunAsRoot = errors.New("container has runAsNonRoot")

// ErrFieldPath means that a fieldRef or resourceFieldRef names something that does not exist.
var ErrFieldPath = errors.New("unsupported field path")
