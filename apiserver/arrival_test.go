package apiserver

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A hundred who come while the store is being asked share the next answer, and nobody gets one from before they came.
func TestArrivalsShareAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a arrival
		asked := int64(0)
		ask := func(ctx context.Context) (int64, error) {
			asked++
			mine := asked
			time.Sleep(time.Second) // of the bubble
			return mine, ctx.Err()
		}
		var waiting sync.WaitGroup
		come := func(n int, want int64) {
			for range n {
				waiting.Go(func() {
					revision, err := a.revision(t.Context(), ask)
					require.NoError(t, err)
					require.Equal(t, want, revision)
				})
			}
			synctest.Wait()
		}
		come(1, 1)
		come(100, 2)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := a.revision(gone, ask)
		require.ErrorIs(t, err, context.Canceled)
		waiting.Wait()
		synctest.Wait()
		come(1, 3)
		waiting.Wait()
		require.EqualValues(t, 3, asked)
		require.Nil(t, a.now)
	})
}

// A panic is an error of those who waited for the answer; who comes later is answered.
func TestArrivalsOutliveAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a arrival
		panics := func(context.Context) (int64, error) {
			time.Sleep(time.Second) // of the bubble
			panic("broken")
		}
		var waiting sync.WaitGroup
		for range 3 { // the first asks for itself, a goroutine for the others
			waiting.Go(func() {
				_, err := a.revision(t.Context(), panics)
				require.ErrorIs(t, err, errPanic)
			})
		}
		waiting.Wait()
		revision, err := a.revision(t.Context(), func(context.Context) (int64, error) { return 7, nil })
		require.NoError(t, err)
		require.EqualValues(t, 7, revision)
	})
}

// Nothing is asked after close, and what is being asked has ended.
func TestArrivalsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a arrival
		asked := 0
		slow := func(context.Context) (int64, error) {
			asked++
			time.Sleep(time.Second) // of the bubble
			return 1, nil
		}
		var waiting sync.WaitGroup
		come := func(want error) {
			waiting.Go(func() {
				_, err := a.revision(t.Context(), slow)
				require.ErrorIs(t, err, want)
			})
			synctest.Wait()
		}
		come(nil)
		come(nil)
		time.Sleep(time.Second) // the second is being asked for
		synctest.Wait()
		come(errStopping)
		a.close()
		waiting.Wait()
		require.Equal(t, 2, asked)
	})
}
