package raftstore

import (
	"sync"
	"time"
)

// steadyClock is the time that leases and the age of history are measured in. It is the machine's monotonic
// clock, which does not follow when somebody sets the time of day; and it is careful with that, too: it
// never goes back, and from one look to the next it goes on by maxLook at most, though it is looked at every
// lessorTick. So time in which the member stood still (SIGSTOP, a machine that was moved) does not count: owners
// who could not reach the leader in that time get to renew before it lets their leases go.
type steadyClock struct {
	source func() time.Time // is called without mu: it takes as long as a simulation wants

	mu   sync.Mutex // guards everything below; no other lock is taken while it is held
	last time.Time  // of source, at the last look
	at   time.Time  // what the clock shows
}

const maxLook = 2 * lessorTick

func newSteadyClock(source func() time.Time) *steadyClock {
	now := source()
	return &steadyClock{source: source, last: now, at: now}
}

func (c *steadyClock) now() time.Time {
	now := c.source()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(min(max(now.Sub(c.last), 0), maxLook))
	c.last = now
	return c.at
}

// run looks at the clock until stop, so that all the time is counted in which this process runs.
func (c *steadyClock) run(stop <-chan struct{}) {
	tick := time.NewTicker(lessorTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.now()
		case <-stop:
			return
		}
	}
}
