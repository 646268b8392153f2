package dns

import "errors"

var (
	// ErrConfig says that a Config cannot be served.
	ErrConfig = errors.New("dns: invalid configuration")
	// errNoUpstream says that a name outside the zone was asked and nobody can be asked about it.
	errNoUpstream = errors.New("no upstream resolver")
	// errBusy says that too many queries wait for upstream resolvers.
	errBusy = errors.New("too many queries are being forwarded")
)
