package apiserver

import (
	"context"
	"time"
)

// storeCheckFor is how long /readyz takes the store's word that it answers. Load balancers and clients ask each server several times
// a second, and each time would otherwise be a linearizable read: three messages for a follower, two for the leader.
// A kube-apiserver asks etcd once a second at most, and in between repeats what it heard, failures too; here a failure is only
// for those who waited for it.
const storeCheckFor = 500 * time.Millisecond

// storeCheck asks the store whether it serves linearizable reads: one question for all who want to know at the time.
type storeCheck struct {
	ask  func(context.Context) error
	turn chan struct{} // room for one: who may ask, and use what follows
	// The last question that had an answer, and its answer.
	asked  time.Time
	answer error
}

func newStoreCheck(ask func(context.Context) error) *storeCheck {
	return &storeCheck{ask: ask, turn: make(chan struct{}, 1)}
}

// run returns nil if the store has answered a question that was asked within storeCheckFor, or else what it answers to one that
// is asked after the call.
func (c *storeCheck) run(ctx context.Context) error {
	called := time.Now()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err() // who has the turn had no answer so far either
	}
	now := time.Now()
	if c.answer == nil && !c.asked.IsZero() && now.Sub(c.asked) < storeCheckFor || c.asked.After(called) {
		return c.answer
	}
	err := c.ask(ctx)
	if ctx.Err() != nil {
		return err // it was this caller who had no patience: that is no answer
	}
	c.asked, c.answer = now, err
	return err
}
