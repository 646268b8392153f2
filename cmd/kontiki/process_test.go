package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLayersStopInReverse(t *testing.T) {
	var order []string
	p := newProcess(t.Context())
	p.onStop(func() error { order = append(order, "store"); return nil })
	p.start(part{"api", func(ctx context.Context) error {
		<-ctx.Done()
		order = append(order, "api")
		return nil
	}})
	p.start(part{"agent", func(ctx context.Context) error {
		<-ctx.Done()
		order = append(order, "agent")
		return nil
	}})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.wait(ended))
	require.NoError(t, p.stop())
	require.Equal(t, []string{"agent", "api", "store"}, order)
}

func TestFailureOfAPartEndsTheProcess(t *testing.T) {
	p := newProcess(t.Context())
	p.start(part{"good", func(ctx context.Context) error { <-ctx.Done(); return nil }},
		part{"bad", func(context.Context) error { return errors.New("no disk") }})
	require.EqualError(t, p.wait(t.Context()), "bad: no disk")
	require.NoError(t, p.stop())

	p.start(part{"quiet", func(context.Context) error { return nil }})
	require.EqualError(t, p.wait(t.Context()), "quiet: ended by itself")
	require.NoError(t, p.stop())
}
