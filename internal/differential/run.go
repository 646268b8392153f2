package differential

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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
	for _, scenarios := range sameObjects(scenarios) {
		group.Go(func() error {
			for _, scenario := range scenarios {
				differences, err := runScenario(ctx, upstream, kontiki, scenario)
				mu.Lock()
				found = append(found, differences...)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return found, group.Wait()
}

// sameObjects puts scenarios together that would meet each other if they ran at once: those of one name, which are about
// one object in several versions, events, which two groups serve, and limit ranges and the pods that they change.
func sameObjects(scenarios []Scenario) [][]Scenario {
	var out [][]Scenario
	for _, s := range scenarios {
		i := slices.IndexFunc(out, func(others []Scenario) bool { return meets(others[0].Name) == meets(s.Name) })
		if i < 0 {
			out = append(out, []Scenario{s})
			continue
		}
		out[i] = append(out[i], s)
	}
	return out
}

func meets(name string) string {
	switch name {
	case "limitranges":
		return "pods"
	case "events.events.k8s.io":
		return "events"
	}
	return name
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
		if step.Name == "create" && a.code != http.StatusCreated {
			return found, fmt.Errorf("%s: upstream refuses the manifest, so that all that follows compares nothing: %s", scenario.Name, outcome(a))
		}
		found = append(found, compare(scenario, step, a, b)...)
	}
	return found, nil
}
