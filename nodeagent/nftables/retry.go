package nftables

import "time"

// The first wait after a failure, and the longest one: a machine may be without nft for good.
const (
	retryFirst = time.Second
	retryMax   = 10 * time.Second
)

// Retry keeps count of transactions that fail one after the other, for who tries again. The zero value has none.
type Retry struct {
	failures int
	last     string
}

// Failed notes a failure, and says how long to wait for the next try and whether the error is another than the last one: only
// then is there something to tell.
func (r *Retry) Failed(err error) (delay time.Duration, isNew bool) {
	isNew = r.failures == 0 || err.Error() != r.last
	r.last = err.Error()
	delay = min(retryFirst<<min(r.failures, 10), retryMax)
	r.failures++
	return delay, isNew
}

// Succeeded notes a success, and says whether it ends failures.
func (r *Retry) Succeeded() (ended bool) {
	ended = r.failures > 0
	*r = Retry{}
	return ended
}
