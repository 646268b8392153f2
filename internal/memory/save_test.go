package memory

import (
	"context"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBurstsAreOverWhenItIsQuiet(t *testing.T) {
	const mib = 1 << 20
	var b bursts
	for _, look := range []struct {
		allocated, live uint64
		over            bool
		why             string
	}{
		{3 * mib, 1 * mib, false, "it is starting"},
		{50 * mib, 20 * mib, false, "it works"},
		{50*mib + 100, 20 * mib, true, "it has stopped"},
		{50*mib + 200, 20 * mib, false, "nothing was allocated since"},
		{51 * mib, 20 * mib, false, "a little"},
		{52 * mib, 20 * mib, false, "and a little more, all in all not worth it"},
		{70 * mib, 20 * mib, false, "it works again"},
		{70 * mib, 100 * mib, false, "20 MiB are not worth a collection of 100"},
		{70 * mib, 40 * mib, true, "but of 40"},
	} {
		require.Equal(t, look.over, b.over(look.allocated, look.live), look.why)
	}
}

// garbage keeps the compiler from leaving the allocations out.
var garbage []byte

func TestSaveGivesBack(t *testing.T) {
	released := func() uint64 {
		samples := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(samples)
		return samples[0].Value.Uint64()
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go Save(ctx, MinLeeway)
		for range 64 {
			garbage = make([]byte, 1<<20)
			garbage[len(garbage)-1] = 1
		}
		garbage = make([]byte, 32<<20)
		for i := 0; i < len(garbage); i += 4096 {
			garbage[i] = 1
		}
		before := released()
		garbage = nil
		time.Sleep(3 * lookEvery)
		require.Greater(t, released(), before+24<<20)
	})
}
