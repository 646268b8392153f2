package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// measured is what a load did.
type measured struct {
	perSecond float64
	p50, p99  time.Duration
}

// load has clients call op, with a number that is different each time, until the time is over. The
// first error ends it.
func load(ctx context.Context, clients int, each time.Duration, op func(ctx context.Context, n int64) error) (measured, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next    atomic.Int64
		running sync.WaitGroup
		mu      sync.Mutex // guards took
		took    []time.Duration
	)
	began := time.Now()
	for range clients {
		running.Go(func() {
			var mine []time.Duration
			for ctx.Err() == nil && time.Since(began) < each {
				start := time.Now()
				if err := op(ctx, next.Add(1)); err != nil {
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
		return measured{}, err
	}
	slices.Sort(took)
	return measured{
		perSecond: float64(len(took)) / elapsed.Seconds(),
		p50:       took[len(took)/2],
		p99:       took[len(took)*99/100],
	}, nil
}

func (m measured) report(what string) {
	report(what, "%7.0f/s   p50 %8s   p99 %8s", m.perSecond, m.p50.Round(10*time.Microsecond), m.p99.Round(10*time.Microsecond))
}
