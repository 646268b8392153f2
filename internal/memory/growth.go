package memory

import (
	"os"
	"runtime/debug"
)

const (
	// growthPercent is how much the heap may grow by before it is collected, in percent of what is in use.
	growthPercent = 50
	// MinLeeway is what it may grow by however little is in use. A collection costs as much as is in use, so a
	// percentage alone takes the same share of the CPU from small processes as from large ones, and saves nothing
	// worth it: a member of the store with 10 MiB in use took a third less CPU for a put with 12 MiB of room than with 5.
	MinLeeway = 12 << 20
	// maxPercent is for a process that has hardly begun.
	maxPercent = 400
)

// percentFor is GOGC for a heap of which so much is in use.
func (g *growth) percentFor(live uint64) int {
	if live <= g.leeway*100/maxPercent {
		return maxPercent
	}
	return int(max(growthPercent, g.leeway*100/live))
}

// growth sets GOGC as what is in use becomes more or less, unless the environment has GOGC.
type growth struct {
	leeway uint64
	set    int // 0 at first
}

// follow sets it anew if that makes a difference: it stops the world for a moment.
func (g *growth) follow(live uint64) {
	wanted := g.percentFor(live)
	if os.Getenv("GOGC") != "" || g.set != 0 && 10*abs(wanted-g.set) < g.set {
		return
	}
	g.set = wanted
	debug.SetGCPercent(wanted)
}

func abs(n int) int { return max(n, -n) }
