package nftables

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/knftables"

	"kontiki/internal/netnstest"
)

// hooked is base with a chain that the kernel calls.
func hooked(tx *knftables.Transaction) {
	base(tx)
	AddBase(tx, "hooked", knftables.FilterType, knftables.ForwardHook, knftables.FilterPriority, "counter accept")
}

// What others take away is noticed, in whatever way, and is back with the next Apply.
func TestWatcher(t *testing.T) {
	for _, damage := range []string{"nft flush ruleset", "nft flush table ip watched", "nft delete table ip watched", "nft flush chain ip watched hooked"} {
		space := netnstest.New(t, "node", "nft")
		table := Open(knftables.IPv4Family, "watched", hooked)
		var w *Watcher
		var err error
		space.In(func() {
			err = table.Apply(t.Context(), map[string]*Ruleset{"a": part("a", "1.1.1.1"), "b": part("b", "1.1.1.2")})
			w = NewWatcher("hooked", "watched")
		})
		require.NoError(t, err)
		require.NotNil(t, w.socket, "the kernel tells")
		w.period = time.Hour
		lost := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, func() {
				select {
				case lost <- struct{}{}:
				default:
				}
			})
		}()
		space.Run(damage)
		select {
		case <-lost:
		case <-time.After(time.Minute):
			require.Fail(t, "not heard: "+damage)
		}
		cancel()
		<-ended
		var before, after bool
		space.In(func() {
			before = table.Verify(t.Context(), "hooked")
			err = table.Apply(t.Context(), nil)
			after = table.Verify(t.Context(), "hooked")
		})
		require.NoError(t, err)
		require.True(t, before, damage)
		require.False(t, after, damage)
	}
}

// An owner that changes rules of its own, and others that change theirs, are no loss.
func TestNoLoss(t *testing.T) {
	space := netnstest.New(t, "node", "nft")
	var w *Watcher
	var failed error
	space.In(func() {
		table := Open(knftables.IPv4Family, "watched", hooked)
		if failed = table.Apply(t.Context(), map[string]*Ruleset{"a": part("a", "1.1.1.1"), "b": part("b", "1.1.1.2")}); failed != nil {
			return
		}
		w = NewWatcher("hooked", "watched", "fence")
		failed = table.Apply(t.Context(), map[string]*Ruleset{"a": nil, "b": part("b", "1.1.1.3"), "c": part("c", "1.1.1.4")})
	})
	require.NoError(t, failed)
	defer w.socket.Close()
	space.Run("nft add table ip other", "nft add chain ip other hooked", "nft add rule ip other hooked accept", "nft delete table ip other",
		"nft add table ip6 fence", "nft delete table ip6 fence")
	for heard := 0; ; {
		messages, _, err := w.socket.Receive()
		require.NoError(t, err)
		for _, m := range messages {
			heard++
			if w.isLoss(m) {
				require.Contains(t, string(m.Data), "fence")
				require.Greater(t, heard, 10, "all before it was heard")
				return
			}
		}
	}
}

// A change that comes upon a flush is written with all the rest.
func TestChangeAfterFlush(t *testing.T) {
	fake := knftables.NewFake(knftables.IPv4Family, "t")
	table := New(fake, base)
	require.NoError(t, table.Apply(t.Context(), map[string]*Ruleset{"a": part("a", "1.1.1.1")}))
	require.NoError(t, New(fake, base).Remove(t.Context()))
	require.NoError(t, table.Apply(t.Context(), map[string]*Ruleset{"b": part("b", "1.1.1.2")}))
	require.Len(t, fake.Table.Maps["m"].Elements, 2)
}

// A machine may get its nft while somebody waits for it.
func TestNFTComesLater(t *testing.T) {
	fake := knftables.NewFake(knftables.IPv4Family, "t")
	var missing error = context.DeadlineExceeded // any
	table := newTable(func() (knftables.Interface, error) { return fake, missing }, base)
	require.ErrorIs(t, table.Apply(t.Context(), map[string]*Ruleset{"a": part("a", "1.1.1.1")}), ErrUnavailable)
	require.ErrorIs(t, table.Amend(t.Context(), NewRuleset()), ErrUnavailable)
	require.ErrorIs(t, table.Remove(t.Context()), ErrUnavailable)
	require.False(t, table.Verify(t.Context(), "any"))
	missing = nil
	require.NoError(t, table.Apply(t.Context(), nil))
	require.Len(t, fake.Table.Maps["m"].Elements, 1)
}

// Failures are waited for longer and longer, and told once.
func TestRetry(t *testing.T) {
	var r Retry
	require.False(t, r.Succeeded())
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
		delay, isNew := r.Failed(ErrUnavailable)
		require.Equal(t, want, delay)
		require.Equal(t, i == 0, isNew)
	}
	_, isNew := r.Failed(context.Canceled)
	require.True(t, isNew)
	require.True(t, r.Succeeded())
	delay, isNew := r.Failed(context.Canceled)
	require.Equal(t, time.Second, delay)
	require.True(t, isNew)
}
