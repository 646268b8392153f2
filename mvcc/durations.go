package mvcc

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Durations counts how long something took, as a histogram for Prometheus. Adding takes no lock, so that the
// write path can afford it.
type Durations struct{ prometheus.Histogram }

// NewDurations returns a histogram with buckets from a tenth of a millisecond, each twice the one before.
func NewDurations(name, help string) Durations {
	return Durations{prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18),
	})}
}

// Since counts the time since start.
func (d Durations) Since(start time.Time) { d.Observe(time.Since(start).Seconds()) }
