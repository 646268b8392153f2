package policy

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// batch is what has changed: all that did while a transaction ran goes into the next together. It is bounded by the numbers
// of pods and policies.
type batch struct {
	all      bool
	verify   bool // somebody else may have taken the table away
	pods     map[types.UID]bool
	policies map[string]bool    // by "namespace/name"
	peers    map[types.UID]bool // policies whose peers changed
	waiters  []waiter
}

// waiter is somebody who waits for the rules of a pod.
type waiter struct {
	uid  types.UID
	told chan<- error // has room for the one answer
}

func newBatch() *batch {
	return &batch{pods: map[types.UID]bool{}, policies: map[string]bool{}, peers: map[types.UID]bool{}}
}

// merge adds another batch.
func (b *batch) merge(o *batch) {
	b.all, b.verify = b.all || o.all, b.verify || o.verify
	maps.Copy(b.pods, o.pods)
	maps.Copy(b.policies, o.policies)
	maps.Copy(b.peers, o.peers)
	b.waiters = append(b.waiters, o.waiters...)
}

// answer tells the waiters what became of their pods.
func (b *batch) answer(of func(types.UID) error) {
	for _, w := range b.waiters {
		w.told <- of(w.uid)
	}
	b.waiters = nil
}

// pending collects a batch. It is safe for concurrent use.
type pending struct {
	mu    sync.Mutex // guards next and again
	next  *batch
	again *time.Timer   // of the last batch that was put back; nil if there was none
	wake  chan struct{} // holds one token while there may be something
}

func newPending() *pending { return &pending{next: newBatch(), wake: make(chan struct{}, 1)} }

// add puts into the next batch what note notes.
func (p *pending) add(note func(*batch)) {
	p.mu.Lock()
	note(p.next)
	p.mu.Unlock()
	p.rouse()
}

// putBack has a batch that has failed be part of the next, which is taken after the delay, or when something is added.
func (p *pending) putBack(b *batch, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.merge(b)
	if p.again != nil {
		p.again.Stop()
	}
	p.again = time.AfterFunc(delay, p.rouse)
}

// rouse has the next batch be taken.
func (p *pending) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// take waits for a batch; nil when ctx has ended, or until is closed.
func (p *pending) take(ctx context.Context, until <-chan struct{}) *batch {
	select {
	case <-p.wake:
	case <-until:
		return nil
	case <-ctx.Done():
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.next
	p.next = newBatch()
	return taken
}
