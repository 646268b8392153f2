package probe

import "errors"

// ErrPort is a probe or hook that names a port its container does not have.
var ErrPort = errors.New("no such port")
