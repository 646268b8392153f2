package raftstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestExpiry: a call gets the timeout at least, and a twentieth more at most.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &expiry{timeout: time.Second}
		first := x.next()
		for _, later := range []time.Duration{0, 10, 39, 1, 300} {
			time.Sleep(later * time.Millisecond)
			began := time.Now()
			go func() {
				<-x.next()
				require.GreaterOrEqual(t, time.Since(began), time.Second)
				require.LessOrEqual(t, time.Since(began), 1050*time.Millisecond)
			}()
		}
		<-first
		require.NotEqual(t, first, x.next())
		time.Sleep(2 * time.Second)
	})
}
