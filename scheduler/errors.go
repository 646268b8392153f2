package scheduler

import "errors"

// ErrNoConfig is returned by Run for a Config without REST.
var ErrNoConfig = errors.New("scheduler: incomplete config")
