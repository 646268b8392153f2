package memory

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much the heap may grow by, in percent of what is in use, before it is collected.
const gcPercent = 50

// Limit makes the garbage collector work earlier than by default. GOGC in the environment wins.
func Limit() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
