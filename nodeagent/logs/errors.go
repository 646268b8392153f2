package logs

import "errors"

// ErrMalformed is a line that is not in the CRI log format.
var ErrMalformed = errors.New("malformed CRI log line")
