package leader

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// One of two works; when it stops the other takes over.
func TestOneWorksAtATime(t *testing.T) {
	cluster := testcluster.Start(t)
	working := make(chan string, 2)
	candidate := func(name string) (stop func()) {
		return cluster.Go(name, func(ctx context.Context) error {
			config := Config{REST: cluster.REST(pki.ControllerManager), Name: "test", Identity: name, Log: cluster.Log}
			return Run(ctx, config, func(ctx context.Context) error {
				working <- name
				<-ctx.Done()
				return nil
			})
		})
	}
	next := func() string {
		select {
		case name := <-working:
			return name
		case <-time.After(30 * time.Second):
			require.Fail(t, "nobody works")
			return ""
		}
	}
	stopFirst := candidate("first")
	require.Equal(t, "first", next())
	candidate("second")
	stopFirst()
	require.Equal(t, "second", next())
}
