package gather

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What was written to connections that are closed is not left behind in the memory of a process that ends.
func TestDrainWaitsForWhatWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer, _ := pair(t)
		other, peerOfOther, _ := pair(t)
		other.leaving = c.leaving
		for _, one := range []*conn{c, other} {
			_, err := one.Write([]byte("the last words"))
			require.NoError(t, err)
			require.NoError(t, one.Close())
		}
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			c.leaving.Drain(t.Context())
		}()
		for _, one := range []io.Reader{peer, peerOfOther} {
			synctest.Wait()
			select {
			case <-drained:
				require.FailNow(t, "something is not written yet")
			default:
			}
			got, err := io.ReadAll(one)
			require.NoError(t, err)
			require.Equal(t, "the last words", string(got))
		}
		<-drained
		c.leaving.Drain(t.Context())
	})
}

func TestDrainLeavesWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := pair(t)
		late, _, _ := pair(t)
		late.leaving = c.leaving
		for _, one := range []*conn{c, late} {
			_, err := one.Write([]byte("nobody reads this"))
			require.NoError(t, err)
		}
		require.NoError(t, c.Close())
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.leaving.Drain(ctx)
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, late.Close())
		c.leaving.Drain(t.Context())
		require.Equal(t, time.Second, time.Since(began), "who is closed now is not waited for")
	})
}
