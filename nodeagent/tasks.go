package nodeagent

import (
	"context"
	"sync"
)

// tasks are the long operations of one pod: image pulls, hooks, kills, writes to the API. They run beside
// the pod's worker, so that it never waits for them, and at most once per key. The worker is
// kicked when one ends.
type tasks struct {
	kick func()
	wg   sync.WaitGroup

	mu      sync.Mutex // guards running; a leaf lock
	running map[string]context.CancelFunc
}

// start runs fn under the key, unless it is running already.
func (t *tasks) start(ctx context.Context, key string, fn func(ctx context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[key] != nil || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	t.running[key] = cancel
	t.wg.Go(func() {
		defer t.kick()
		defer func() {
			cancel()
			t.mu.Lock()
			delete(t.running, key)
			t.mu.Unlock()
		}()
		fn(ctx)
	})
}

func (t *tasks) has(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[key] != nil
}

// cancel ends the task's context; the task is there until it returns.
func (t *tasks) cancel(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cancel := t.running[key]; cancel != nil {
		cancel()
	}
}

// wait returns when no task runs any more. Their contexts must have ended.
func (t *tasks) wait() { t.wg.Wait() }
