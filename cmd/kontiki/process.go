package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// process runs the parts of a node. They are started in layers, each of which uses the ones before
// it, and stopped in the reverse order: clients of the API server, the API server, the store.
type process struct {
	ctx    context.Context // values for the parts; its end does not stop them, stop does
	layers []func()        // each ends one layer and waits for it

	failed chan error // the first part that ended by itself; later ones are dropped
}

// errEnded: a part has ended although nobody told it to.
var errEnded = errors.New("ended by itself")

// part is a named component that runs until its context ends.
type part struct {
	name string
	run  func(ctx context.Context) error
}

func newProcess(ctx context.Context) *process {
	return &process{ctx: context.WithoutCancel(ctx), failed: make(chan error, 1)}
}

// start starts parts that do not need each other.
func (p *process) start(parts ...part) {
	ctx, cancel := context.WithCancel(p.ctx)
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() {
			err := part.run(ctx)
			if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
				return
			}
			p.fail(fmt.Errorf("%s: %w", part.name, cmp.Or(err, errEnded)))
		})
	}
	p.layers = append(p.layers, func() { cancel(); running.Wait() })
}

// onStop adds a layer that only has to be closed.
func (p *process) onStop(close func() error) {
	p.layers = append(p.layers, func() {
		if err := close(); err != nil {
			p.fail(err)
		}
	})
}

func (p *process) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

// stop ends all layers and returns the first failure, if there was one.
func (p *process) stop() error {
	for _, end := range slices.Backward(p.layers) {
		end()
	}
	p.layers = nil
	select {
	case err := <-p.failed:
		return err
	default:
		return nil
	}
}

// wait returns when ctx ends or a part fails; the caller then calls stop.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.failed:
		return err
	}
}
