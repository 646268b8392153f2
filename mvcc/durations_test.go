package mvcc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurations(t *testing.T) {
	var d Durations
	for _, took := range []time.Duration{0, 100 * time.Microsecond, 101 * time.Microsecond, 3 * time.Millisecond, time.Hour} {
		d.Add(took)
	}
	count, sum, upTo := d.Buckets()
	require.EqualValues(t, 5, count)
	require.InDelta(t, 3600.0032, sum, 0.0001)
	require.EqualValues(t, 2, upTo[0.0001])
	require.EqualValues(t, 3, upTo[0.0002])
	require.EqualValues(t, 4, upTo[0.0032])
	require.EqualValues(t, 4, upTo[13.1072], "an hour is beyond all bounds")
	require.Len(t, upTo, 18)
}
