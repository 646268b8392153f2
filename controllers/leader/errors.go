package leader

import "errors"

// ErrNotLeader is what a write fails with that does not come from the holder of the Lease. Nothing was sent.
var ErrNotLeader = errors.New("leader: this process does not hold the lease")

// errLost ends a term: somebody else has the Lease.
var errLost = errors.New("leader: somebody else has the lease")
