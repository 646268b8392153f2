package main

import (
	"context"

	"kontiki/internal/memory"
)

// serverLeeway is what the heap of a server may grow by between two collections while it works: with 48 MiB in place
// of 17 it creates a tenth more objects a second, and when the work is over all of it goes back.
const serverLeeway = 48 << 20

// saveMemory makes a process small: a node should leave the machine to its pods.
func saveMemory(p *process, leeway uint64) {
	p.start(part{"memory", func(ctx context.Context) error { memory.Save(ctx, leeway); return ctx.Err() }})
}
