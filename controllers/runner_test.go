package controllers

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type reconcileFunc func(context.Context, Request) (Result, error)

func (f reconcileFunc) Reconcile(ctx context.Context, req Request) (Result, error) {
	return f(ctx, req)
}

func TestRunnerRetriesRequeuesAndSurvivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := map[string][]time.Duration{}
		start := time.Now()
		c := newController("test", 2, reconcileFunc(func(_ context.Context, req Request) (Result, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[req.Name] = append(calls[req.Name], time.Since(start))
			switch n := len(calls[req.Name]); {
			case req.Name == "fails twice" && n < 3:
				return Result{}, errors.New("no")
			case req.Name == "panics once" && n < 2:
				panic("oh")
			case req.Name == "again" && n < 2:
				return Result{RequeueAfter: time.Minute}, nil
			}
			return Result{}, nil
		}), retryMax, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.run(ctx); close(done) }()
		for _, name := range []string{"fails twice", "panics once", "again", "again"} {
			c.enqueue(named(name))
		}
		time.Sleep(2 * time.Minute)
		cancel()
		<-done
		require.Len(t, calls["fails twice"], 3)
		require.Len(t, calls["panics once"], 2)
		require.Len(t, calls["again"], 2, "waiting twice is waiting once")
		require.GreaterOrEqual(t, calls["again"][1], time.Minute)
	})
}

func TestRunNeedsAServer(t *testing.T) {
	require.ErrorIs(t, Run(t.Context(), Config{}), ErrConfig)
}
