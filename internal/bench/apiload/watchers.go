package apiload

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"kontiki/internal/bench/load"
)

const (
	watchers      = 100
	pacePerSecond = 50
)

// audience is a hundred watchers of the namespace's config maps.
type audience struct {
	watches []watch.Interface
	reading errgroup.Group
	events  atomic.Int64
	stopped atomic.Bool
}

// watchAll opens the watches; each event of each is given to see.
func (r *runner) watchAll(ctx context.Context, see func(watch.Event)) (*audience, error) {
	list, err := r.client(0).CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	a := &audience{}
	for i := range watchers {
		w, err := r.client(i).CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			a.stop()
			return nil, err
		}
		a.watches = append(a.watches, w)
		a.reading.Go(func() error {
			for event := range w.ResultChan() {
				if event.Type == watch.Error {
					if a.stopped.Load() {
						return nil // client-go reports its own closing so
					}
					return fmt.Errorf("watch: %v", event.Object)
				}
				a.events.Add(1)
				see(event)
			}
			return nil
		})
	}
	return a, nil
}

func (a *audience) stop() {
	a.stopped.Store(true)
	for _, w := range a.watches {
		w.Stop()
	}
}

// finish waits until all watchers have seen n events.
func (a *audience) finish(ctx context.Context, n int64) error {
	for a.events.Load() < n*watchers {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	a.stop()
	return a.reading.Wait()
}

// watchPaced measures from before a create until each watcher has the event.
func (r *runner) watchPaced(ctx context.Context) error {
	defer r.remove(ctx)
	var (
		mu    sync.Mutex // guards began and took
		began = map[string]time.Time{}
		took  []time.Duration
	)
	a, err := r.watchAll(ctx, func(event watch.Event) {
		now := time.Now()
		m, err := meta.Accessor(event.Object)
		if err != nil {
			return
		}
		mu.Lock()
		took = append(took, now.Sub(began[m.GetName()]))
		mu.Unlock()
	})
	if err != nil {
		return err
	}
	start, tick, n := time.Now(), time.NewTicker(time.Second/pacePerSecond), int64(0)
	defer tick.Stop()
	for ; time.Since(start) < 2*r.Each; n++ {
		<-tick.C
		name := fmt.Sprintf("w-%d", n)
		mu.Lock()
		began[name] = time.Now()
		mu.Unlock()
		if _, err := r.client(int(n)).CoreV1().ConfigMaps(namespace).Create(ctx, configMap(name), metav1.CreateOptions{}); err != nil {
			a.stop()
			return err
		}
	}
	if err := a.finish(ctx, n); err != nil {
		return err
	}
	r.Report(fmt.Sprintf("%d watchers, %d creates/s, create to event", watchers, pacePerSecond),
		figure(load.Measure(took, time.Since(start))), "p50 2 ms, p99 6 ms (13, 61)")
	return nil
}

// watchFlatOut measures how many events reach the watchers when 16 clients create as fast as they can.
func (r *runner) watchFlatOut(ctx context.Context) error {
	defer r.remove(ctx)
	a, err := r.watchAll(ctx, func(watch.Event) {})
	if err != nil {
		return err
	}
	began := time.Now()
	m, err := load.Run(ctx, 16, r.Each, func(ctx context.Context, c int, n int64) error {
		_, err := r.client(c).CoreV1().ConfigMaps(namespace).Create(ctx, configMap(fmt.Sprintf("f-%d", n)), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		a.stop()
		return err
	}
	if err := a.finish(ctx, int64(m.Count)); err != nil {
		return err
	}
	elapsed := time.Since(began)
	r.Report(fmt.Sprintf("%d watchers, as fast as it goes", watchers),
		fmt.Sprintf("%7.0f events/s of %0.f creates/s", float64(a.events.Load())/elapsed.Seconds(), float64(m.Count)/elapsed.Seconds()), "57,000 events/s (11,400)")
	return nil
}
