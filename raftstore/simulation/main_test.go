package simulation

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
)

// TestMain lets the heap grow further between collections: a seed makes a lot of garbage and keeps little. And a
// seed seldom keeps a whole core busy, so more of them run at once than there are.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
	debug.SetGCPercent(500)
	os.Exit(m.Run())
}
