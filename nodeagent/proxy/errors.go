package proxy

import "errors"

// ErrConfig says that a Config cannot be used.
var ErrConfig = errors.New("proxy: invalid configuration")
