package member

import (
	"context"
	"time"
)

const (
	attemptEvery = 10 * time.Millisecond
	// failOverLimit is how long the others may take before the bench gives up.
	failOverLimit = 30 * time.Second
)

// FirstWrite tries to write, again every attemptEvery whether or not earlier attempts have returned, and
// returns when the first one is accepted.
func FirstWrite(ctx context.Context, f Fronts) error {
	ctx, cancel := context.WithTimeout(ctx, failOverLimit)
	defer cancel()
	accepted := make(chan struct{}, 1)
	tick := time.NewTicker(attemptEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		go func() {
			if f.Of(n).Put(ctx, "/first", Value256) == nil {
				select {
				case accepted <- struct{}{}:
				default:
				}
			}
		}()
		select {
		case <-accepted:
			return nil
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
