package mvcc

import (
	"sync/atomic"
	"time"
)

// Durations counts how long something took, as a histogram. The zero value is ready; it takes no lock,
// so that the write path can afford it.
type Durations struct {
	counts [len(durationBounds) + 1]atomic.Uint64 // by the first bound that is not exceeded; the last is for the rest
	sum    atomic.Int64                           // nanoseconds
}

// durationBounds are the upper bounds of a histogram's buckets: from a tenth of a millisecond, doubled each time.
var durationBounds = [18]time.Duration{}

func init() {
	for i := range durationBounds {
		durationBounds[i] = 100 * time.Microsecond << i
	}
}

// Add counts one duration.
func (d *Durations) Add(took time.Duration) {
	i := 0
	for i < len(durationBounds) && took > durationBounds[i] {
		i++
	}
	d.counts[i].Add(1)
	d.sum.Add(int64(took))
}

// Since counts the time since start.
func (d *Durations) Since(start time.Time) { d.Add(time.Since(start)) }

// Buckets returns how many durations there were, their sum in seconds, and how many were no longer than each of
// some bounds in seconds: what Prometheus calls a cumulative histogram.
func (d *Durations) Buckets() (count uint64, sum float64, upTo map[float64]uint64) {
	upTo = make(map[float64]uint64, len(durationBounds))
	for i, bound := range durationBounds {
		count += d.counts[i].Load()
		upTo[bound.Seconds()] = count
	}
	count += d.counts[len(durationBounds)].Load()
	return count, time.Duration(d.sum.Load()).Seconds(), upTo
}
