package policy

import (
	"context"
	"maps"
	"sync"

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
	waiters  []chan<- error     // each is told, once, what became of the batch
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

// answer tells the waiters, each of which has room for an answer.
func (b *batch) answer(err error) {
	for _, w := range b.waiters {
		w <- err
	}
	b.waiters = nil
}

// pending collects a batch. It is safe for concurrent use.
type pending struct {
	mu   sync.Mutex // guards next
	next *batch
	wake chan struct{} // holds one token while there may be something
}

func newPending() *pending { return &pending{next: newBatch(), wake: make(chan struct{}, 1)} }

// add puts into the next batch what note notes.
func (p *pending) add(note func(*batch)) {
	p.mu.Lock()
	note(p.next)
	p.mu.Unlock()
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
