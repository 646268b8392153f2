package rejoin

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// ErrClosed: the guard was closed while entries waited for a disk that takes none. They are not in the log.
var ErrClosed = errors.New("rejoin: closed")

// appendRetry is how long after a disk has refused entries they are offered to it again.
const appendRetry = 100 * time.Millisecond

// StoreLogs implements raft.LogStore. Where a conflict was truncated, it does not return before the entries that take
// its place are in the log: raft would go on believing that the log ends where it did. Raft stands still meanwhile, and
// with it the member; it could not follow without a disk anyway.
func (g *Guard) StoreLogs(entries []*raft.Log) error {
	if !g.truncated {
		return g.LogStore.StoreLogs(entries)
	}
	for said := false; ; {
		select {
		case <-g.closed:
			return ErrClosed
		default:
		}
		err := g.LogStore.StoreLogs(entries)
		if err == nil {
			g.truncated = false
			return nil
		}
		if !said {
			g.log.Error("the disk refuses entries after a truncation: this member stands still until it takes them", "err", err)
			said = true
		}
		g.pause()
	}
}

// pause waits for appendRetry, or until Close.
func (g *Guard) pause() {
	timer := time.NewTimer(appendRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.closed:
	}
}

// Close ends waiting for the disk, so that raft can be shut down. Raft must take no part in the cluster afterwards.
func (g *Guard) Close() { g.closing.Do(func() { close(g.closed) }) }
