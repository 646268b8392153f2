package compare

import (
	"context"
	"time"
)

const (
	attemptEvery = 10 * time.Millisecond
	// failOverLimit is how long the others may take before the bench gives up.
	failOverLimit = 30 * time.Second
)

// firstWrite tries to write, again every attemptEvery whether or not earlier attempts have returned, and
// returns when the first one is accepted.
func firstWrite(ctx context.Context, f fronts) error {
	ctx, cancel := context.WithTimeout(ctx, failOverLimit)
	defer cancel()
	accepted := make(chan struct{}, 1)
	tick := time.NewTicker(attemptEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		go func() {
			if f.of(n).put(ctx, "/first", value256) == nil {
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
