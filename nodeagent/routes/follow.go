package routes

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"
)

// Follow calls changed whenever links, addresses, or routes of this machine have changed, others' as well, until ctx ends. changed must not
// block. The error says that the kernel cannot be listened to.
func Follow(ctx context.Context, changed func()) error {
	links, addresses, gone := make(chan netlink.LinkUpdate), make(chan netlink.AddrUpdate), make(chan netlink.RouteUpdate)
	// Each subscription ends with ctx; the goroutines below read on until its channel is closed.
	if err := netlink.LinkSubscribe(links, ctx.Done()); err != nil {
		return fmt.Errorf("routes: listen to links: %w", err)
	}
	go forEach(links, changed)
	if err := netlink.AddrSubscribe(addresses, ctx.Done()); err != nil {
		return fmt.Errorf("routes: listen to addresses: %w", err)
	}
	go forEach(addresses, changed)
	if err := netlink.RouteSubscribe(gone, ctx.Done()); err != nil {
		return fmt.Errorf("routes: listen to routes: %w", err)
	}
	go forEach(gone, changed)
	<-ctx.Done()
	return nil
}

func forEach[T any](updates <-chan T, changed func()) {
	for range updates {
		changed()
	}
}
