package memory

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSmallHeapsMayGrowByMore(t *testing.T) {
	const mib = 1 << 20
	for live, want := range map[uint64]int{
		0: 400, 1 * mib: 400, 4 * mib: 400, 8 * mib: 200, 16 * mib: 100, 32 * mib: 50, 33 * mib: 50, 1000 * mib: 50,
	} {
		require.Equal(t, want, percentFor(live), "%d MiB", live/mib)
	}
}

func TestGrowthFollows(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	is := func(want int) {
		t.Helper()
		got := debug.SetGCPercent(100)
		debug.SetGCPercent(got)
		require.Equal(t, want, got)
	}
	var g growth
	g.follow(16 << 20)
	is(100)
	g.follow(8 << 20)
	is(200)
	g.follow(8<<20 + 100<<10)
	is(200) // not worth it
	g.follow(100 << 20)
	is(50)
	t.Setenv("GOGC", "70")
	g.follow(8 << 20)
	is(50) // whoever has set GOGC wants it so
}
