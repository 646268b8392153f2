package raftstore

import "context"

// turn is a mutex for what takes long: who waits for it stops waiting when its context ends. (And a
// goroutine that waits for a turn does not keep a simulation's clock from going on, as a mutex does.)
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits until nobody else has the turn.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass gives the turn back.
func (t turn) pass() { <-t }
