package simulation

import (
	"sync"
	"time"
)

// gate is where a process stands still, as with SIGSTOP. Nobody can stop goroutines one by one, so the gate is
// in the way of all that they do to the world or learn from it: the disk, the clock, the answers to clients, and
// the log. The network is cut for as long. The log is what keeps raft's timers from telling: raft writes a
// line before it acts on a timeout (a leader that has heard of nobody before it steps down, a follower before it stands
// for election), and does not get beyond it. So a leader that was paused wakes up, as in life, as a leader.
type gate struct {
	mu    sync.Mutex // guards until
	until time.Time
}

// pass waits while the gate is shut.
func (g *gate) pass() {
	for {
		g.mu.Lock()
		wait := time.Until(g.until)
		g.mu.Unlock()
		if wait <= 0 {
			return
		}
		time.Sleep(wait)
	}
}

func (g *gate) shut(pause time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Now().Add(pause)
}

func (s *simulation) pause(f fault) {
	if p := s.cluster.process(f.who[0]); p != nil {
		p.gate.shut(f.lasts)
	}
	s.cut(f, s.ways(f.who[0], true, true))
}
