package apiserver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStoreCheck: who asks /readyz together, or soon after, has one answer of the store; a failure is never repeated.
func TestStoreCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, answer := 0, error(nil)
		c := newStoreCheck(func(ctx context.Context) error {
			asked++
			select {
			case <-time.After(10 * time.Millisecond):
				return answer
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		together := func() (results []error) {
			results = make([]error, 8)
			var all sync.WaitGroup
			for i := range results {
				all.Go(func() { results[i] = c.run(t.Context()) })
			}
			all.Wait()
			return results
		}
		for _, err := range together() {
			require.NoError(t, err)
		}
		require.Equal(t, 1, asked)

		answer = errors.New("no leader")
		require.NoError(t, c.run(t.Context()), "the good answer is still new")
		time.Sleep(storeCheckFor)
		for _, err := range together() {
			require.ErrorIs(t, err, answer)
		}
		require.Equal(t, 3, asked, "one question for the first, and one for all who came while it was open")

		answer = nil
		require.NoError(t, c.run(t.Context()), "the store answers again")
		require.Equal(t, 4, asked, "a failure is not repeated to who comes later")
	})
}

// TestStoreCheckPatience: who has less patience than the one who asks gives up, and takes nobody along.
func TestStoreCheckPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStoreCheck(func(ctx context.Context) error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		first := make(chan error)
		go func() { first <- c.run(t.Context()) }()
		synctest.Wait()
		hasty, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, c.run(hasty), context.DeadlineExceeded)
		require.NoError(t, <-first)
	})
}
