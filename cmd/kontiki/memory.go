package main

import (
	"context"

	"kontiki/internal/memory"
)

// saveMemory makes a process small: a node should leave the machine to its pods.
func saveMemory(p *process) {
	p.start(part{"memory", func(ctx context.Context) error { memory.Save(ctx); return ctx.Err() }})
}
