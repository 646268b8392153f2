package memory

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSmallHeapsMayGrowByMore(t *testing.T) {
	const mib = 1 << 20
	for live, want := range map[uint64]int{
		0: 400, 1 * mib: 400, 3 * mib: 400, 6 * mib: 200, 12 * mib: 100, 24 * mib: 50, 25 * mib: 50, 1000 * mib: 50,
	} {
		require.Equal(t, want, (&growth{leeway: MinLeeway}).percentFor(live), "%d MiB", live/mib)
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
	g := growth{leeway: MinLeeway}
	g.follow(12 << 20)
	is(100)
	g.follow(6 << 20)
	is(200)
	g.follow(6<<20 + 100<<10)
	is(200) // not worth it
	g.follow(100 << 20)
	is(50)
	t.Setenv("GOGC", "70")
	g.follow(6 << 20)
	is(50) // whoever has set GOGC wants it so
}
