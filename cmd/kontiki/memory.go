package main

import (
	"os"
	"runtime/debug"
)

// limitMemory makes the garbage collector trade time for memory, as a node that should leave the
// machine to its pods. GOGC and GOMEMLIMIT in the environment win.
func limitMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
