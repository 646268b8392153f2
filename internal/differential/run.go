package differential

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// parallel scenarios: enough to keep two servers busy, few enough to leave time-outs alone.
const parallel = 4

// Run sends the corpus to both servers and returns what differs.
func Run(ctx context.Context, upstream, kontiki Server, scenarios []Scenario) ([]Difference, error) {
	var mu sync.Mutex // guards found
	var found []Difference
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, scenario := range scenarios {
		group.Go(func() error {
			differences, err := runScenario(ctx, upstream, kontiki, scenario)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, differences...)
			return err
		})
	}
	return found, group.Wait()
}

func runScenario(ctx context.Context, upstream, kontiki Server, scenario Scenario) ([]Difference, error) {
	left, right := newSession(upstream), newSession(kontiki)
	var found []Difference
	for _, step := range scenario.Steps {
		var a, b answer
		pair, ctx := errgroup.WithContext(ctx)
		pair.Go(func() (err error) { a, err = left.do(ctx, step); return err })
		pair.Go(func() (err error) { b, err = right.do(ctx, step); return err })
		if err := pair.Wait(); err != nil {
			return found, fmt.Errorf("%s, %s: %w", scenario.Name, step.Name, err)
		}
		found = append(found, compare(scenario, step, a, b)...)
	}
	return found, nil
}
