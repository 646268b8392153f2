package simulation

import (
	"sync"
	"time"
)

// clock is the clock of a member's machine (raftstore.Config.Clock). It is never quite right, and may jump.
type clock struct {
	begin time.Time
	rate  float64 // how fast it goes

	mu     sync.Mutex // guards jumped
	jumped time.Duration
}

// maxDrift is by how much a clock may be too fast or too slow, far more than in life.
const maxDrift = 0.05

func newClock(d *dice) *clock {
	return &clock{rate: 1 + pick(d, 0, maxDrift, -maxDrift, maxDrift/10)}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begin.IsZero() { // in the bubble, where time is another
		c.begin = time.Now()
	}
	return c.begin.Add(time.Duration(float64(time.Since(c.begin))*c.rate) + c.jumped)
}

func (c *clock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jumped += by
}

// jumpClock sets a member's clock forward or back.
func (s *simulation) jumpClock(f fault) {
	by := pick(s.dice, 300*time.Millisecond, 3*time.Second, time.Minute, time.Hour)
	if s.dice.happens(0.5) {
		by = -by
	}
	s.leases.noteJump()
	s.cluster.clocks[f.who[0]].jump(by)
}
