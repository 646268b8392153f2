package scheduler

import "errors"

// ErrConfig is returned by Run for a Config without REST.
var ErrConfig = errors.New("scheduler: incomplete config")
