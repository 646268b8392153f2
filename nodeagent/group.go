package nodeagent

import (
	"errors"
	"sync"
)

// errGroup runs the agent's long-lived parts and collects their errors. The zero value is usable.
type errGroup struct {
	wg   sync.WaitGroup
	mu   sync.Mutex // guards errs
	errs []error
}

// run starts fn; if it fails, failed (if not nil) is called.
func (g *errGroup) run(fn func() error, failed func()) {
	g.wg.Go(func() {
		if err := fn(); err != nil {
			g.mu.Lock()
			g.errs = append(g.errs, err)
			g.mu.Unlock()
			if failed != nil {
				failed()
			}
		}
	})
}

// wait returns all errors, joined, when every part has ended.
func (g *errGroup) wait() error {
	g.wg.Wait()
	return errors.Join(g.errs...)
}
