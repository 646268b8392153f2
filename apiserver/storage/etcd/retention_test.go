package etcd

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/watch/watchtest"
)

// flakyModel is the model of a store, whose compactions can be made to fail.
type flakyModel struct {
	*watchtest.Store
	broken atomic.Bool
}

func (m *flakyModel) Compact(_ context.Context, revision int64) error {
	if m.broken.Load() {
		return errors.New("broken")
	}
	m.Store.Compact(revision)
	return nil
}

func TestHistoryIsKeptByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flakyModel{Store: watchtest.New()}
		go keepHistory(t.Context(), store, time.Hour, slog.New(slog.DiscardHandler))
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() } // of the bubble's clock
		pass(time.Minute)
		first := store.Put("a", "1")
		pass(30 * time.Minute)
		second := store.Put("a", "2")
		pass(25 * time.Minute)
		require.Less(t, store.Compacted(), first, "too young")
		pass(20 * time.Minute)
		require.Equal(t, first, store.Compacted(), "first was the newest until half an hour ago")
		store.broken.Store(true)
		pass(2 * time.Hour)
		require.Equal(t, first, store.Compacted())
		store.broken.Store(false)
		pass(10 * time.Minute)
		require.Equal(t, second, store.Compacted(), "it goes on after a failure")
		pass(10 * time.Hour)
		require.Equal(t, second, store.Compacted(), "nothing happened since")
	})
}
