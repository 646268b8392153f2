package proxy

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// noService is the key of what concerns no Service.
const noService = "-"

// pending collects the Services that have changed: all that did while a transaction ran go into the next together. It is
// bounded by the number of Services. It is safe for concurrent use.
type pending struct {
	mu   *sync.Mutex // guards keys
	keys map[string]bool
	wake chan struct{} // holds one token while there may be keys
}

func newPending() pending {
	return pending{mu: &sync.Mutex{}, keys: map[string]bool{}, wake: make(chan struct{}, 1)}
}

func (p *pending) add(keys ...string) {
	p.mu.Lock()
	for _, key := range keys {
		p.keys[key] = true
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// addAfter adds keys when a time has passed. It waits for it, unless ctx ends: what changes meanwhile waits too.
func (p *pending) addAfter(ctx context.Context, delay time.Duration, keys []string) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.add(keys...)
	case <-ctx.Done():
	}
}

// take waits for keys and returns all that are there; ok is false when ctx has ended.
func (p *pending) take(ctx context.Context) (keys []string, ok bool) {
	for len(keys) == 0 {
		select {
		case <-p.wake:
		case <-ctx.Done():
			return nil, false
		}
		p.mu.Lock()
		for key := range p.keys {
			keys = append(keys, key)
		}
		clear(p.keys)
		p.mu.Unlock()
	}
	return keys, true
}

// handler adds the keys of objects that come, change or go; of a slice that changes hands both.
func (p *pending) handler(keyOf func(metav1.Object) string) cache.ResourceEventHandler {
	add := func(objects ...any) {
		for _, obj := range objects {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if o, ok := obj.(metav1.Object); ok && keyOf(o) != noService {
				p.add(keyOf(o))
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { add(obj) },
		UpdateFunc: func(old, obj any) { add(old, obj) },
		DeleteFunc: func(obj any) { add(obj) },
	}
}
