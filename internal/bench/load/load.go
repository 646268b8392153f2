// Package load has clients do the same thing again and again, and says how fast that was.
package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Measured is what a load did.
type Measured struct {
	Count     int           `json:"count"`
	PerSecond float64       `json:"perSecond"`
	P50       time.Duration `json:"p50"` // of one call, as all others here
	P99       time.Duration `json:"p99"`
}

// Op is one call of a client (0, 1, …), with a number that is different each time.
type Op func(ctx context.Context, client int, n int64) error

// Run has clients call op, each one call at a time, until the time is over. The first error ends it.
func Run(ctx context.Context, clients int, each time.Duration, op Op) (Measured, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next    atomic.Int64
		running sync.WaitGroup
		mu      sync.Mutex // guards took
		took    []time.Duration
	)
	began := time.Now()
	for c := range clients {
		running.Go(func() {
			var mine []time.Duration
			for ctx.Err() == nil && time.Since(began) < each {
				start := time.Now()
				if err := op(ctx, c, next.Add(1)); err != nil {
					cancel(err)
					break
				}
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	running.Wait()
	elapsed := time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return Measured{}, err
	}
	return Measure(took, elapsed), nil
}

// Measure sums up how long calls took, of which there was at least one, all of them in elapsed.
func Measure(took []time.Duration, elapsed time.Duration) Measured {
	slices.Sort(took)
	return Measured{
		Count:     len(took),
		PerSecond: float64(len(took)) / elapsed.Seconds(),
		P50:       took[len(took)/2],
		P99:       took[len(took)*99/100],
	}
}

// Pause waits; it returns the context's error if that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
