package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	lookEvery = time.Second
	// quietBytes is what a process that has nothing to do may allocate between two looks.
	quietBytes = 1 << 20
	// worthBytes is the least for which a collection is made.
	worthBytes = 2 << 20
)

// Save keeps the process small until ctx ends. GOGC in the environment wins over how the heap may grow.
//
// By itself the collector starts when the heap has grown by some part. A process that falls quiet before that keeps
// its garbage, and the free memory between what is in use, for up to two minutes and more: so when a burst of work is
// over, garbage is collected and free memory returned to the system at once, and what the work needed of the program
// itself is no longer kept in memory for this process (program.go).
//
// leeway is what a small heap may grow by before it is collected; see MinLeeway.
func Save(ctx context.Context, leeway uint64) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var b bursts
	g := growth{leeway: leeway}
	for {
		allocated, live := heap()
		g.follow(live)
		if b.over(allocated, live) {
			debug.FreeOSMemory()
			dropProgram()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// heap returns how much was allocated since the process began, and how much was in use after the last collection.
func heap() (allocated, live uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

// bursts finds the moments when it is worth to give memory back.
type bursts struct {
	looked uint64 // bytes allocated when it was last looked
	given  uint64 // and when memory was last given back
}

// over says whether this is such a moment: nothing much was allocated since the last look, but a good deal since
// memory was last given back: a quarter of what is in use, so that a process with a little to do all the time is not
// made to collect all the time.
func (b *bursts) over(allocated, live uint64) bool {
	quiet := allocated-b.looked <= quietBytes
	b.looked = allocated
	if !quiet || allocated-b.given < max(worthBytes, live/4) {
		return false
	}
	b.given = allocated
	return true
}
