package member

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"kontiki/internal/bench/load"
)

// The watch load: 100 watchers of one key, and 200 puts a second to it, at a pace that slow answers do not
// change. A value begins with the moment before its put.
const (
	Watchers      = 100
	putsPerSecond = 200
	watchedKey    = "/watched"
	// straggling is how long the last events may take after the last put.
	straggling = 5 * time.Second
)

// FanOut measures from before a put to each watcher's event.
func FanOut(ctx context.Context, f Fronts, each time.Duration) (load.Measured, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		began         = time.Now()
		ready, ending sync.WaitGroup
		took          [Watchers][]time.Duration
		enough        = make(chan int, Watchers) // watchers that have seen all
	)
	total := int(each.Seconds() * putsPerSecond)
	ready.Add(Watchers)
	for w := range Watchers {
		ending.Go(func() {
			err := f.Of(w).Watch(ctx, watchedKey, sync.OnceFunc(ready.Done), func(value []byte) {
				sent := began.Add(time.Duration(binary.BigEndian.Uint64(value)))
				if took[w] = append(took[w], time.Since(sent)); len(took[w]) == total {
					enough <- w
				}
			})
			if ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	ready.Wait()
	start := time.Now()
	if err := paced(ctx, total, func() error {
		return f.Of(0).Put(ctx, watchedKey, binary.BigEndian.AppendUint64(nil, uint64(time.Since(began))))
	}); err != nil {
		return load.Measured{}, err
	}
	elapsed := time.Since(start)
	err := receive(ctx, enough)
	cancel(nil)
	ending.Wait()
	if err != nil {
		return load.Measured{}, err
	}
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	return load.Measure(all, elapsed), nil
}

// paced calls op total times, putsPerSecond a second, whether or not earlier calls have returned, and waits for all.
func paced(ctx context.Context, total int, op func() error) error {
	tick := time.NewTicker(time.Second / putsPerSecond)
	defer tick.Stop()
	failed := make(chan error, total)
	for range total {
		select {
		case <-tick.C:
			go func() { failed <- op() }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for range total {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// receive waits for all watchers.
func receive(ctx context.Context, enough <-chan int) error {
	ctx, cancel := context.WithTimeout(ctx, straggling)
	defer cancel()
	for range Watchers {
		select {
		case <-enough:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
