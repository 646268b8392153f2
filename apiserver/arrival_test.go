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
