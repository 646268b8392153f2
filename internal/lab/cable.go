package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The link between a machine and the bridge has one name on each side.
const (
	inner = "eth0"
	// bridgeName is the bridge's, on this machine.
	bridgeName = prefix
)

// makeBridge makes the bridge with this machine's own addresses in the lab.
func (l *Lab) makeBridge() error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = bridgeName
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("lab: bridge %s: %w", bridgeName, err)
	}
	return errors.Join(addAddresses(bridge, frontAddress, l.isDualStack()), netlink.LinkSetUp(bridge))
}

// outer is the name of a machine's link at the bridge; interfaces have at most 15 characters.
func (h *Host) outer() string { return "klab-" + h.Name }

// connect makes the machine's namespace, and a link from it to the bridge. The way out leads through this machine.
func (h *Host) connect() error {
	space, err := newNamespace(h.namespace())
	if err != nil {
		return fmt.Errorf("lab: network namespace %s: %w", h.namespace(), err)
	}
	defer space.Close()
	h.made = true
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MasterIndex = h.outer(), bridge.Attrs().Index
	link := &netlink.Veth{LinkAttrs: attributes, PeerName: inner, PeerNamespace: netlink.NsFd(space)}
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("lab: link of %s: %w", h.Name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("lab: link of %s: %w", h.Name, err)
	}
	return h.inside(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		eth, err := netlink.LinkByName(inner)
		if err != nil {
			return err
		}
		address, err := netip.ParseAddr(h.Address)
		if err != nil {
			return err
		}
		if err := errors.Join(netlink.LinkSetUp(lo), addAddresses(eth, address, h.lab.isDualStack()), netlink.LinkSetUp(eth)); err != nil {
			return err
		}
		return h.addDefaultRoutes(eth)
	})
}

// newNamespace makes a named network namespace, as `ip netns add` does.
func newNamespace(name string) (space netns.NsHandle, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		space, err = netns.NewNamed(name)
	}()
	<-done
	return space, err
}

// CheckNetwork returns ErrLost if the lab's network is gone.
func (l *Lab) CheckNetwork() error {
	if _, err := netlink.LinkByName(bridgeName); errors.As(err, &netlink.LinkNotFoundError{}) {
		return ErrLost
	}
	return nil
}

// removeNetwork takes away what connect and makeBridge made, as far as it is there.
func (l *Lab) removeNetwork() error {
	var failed error
	for _, h := range l.Hosts {
		if err := netns.DeleteNamed(h.namespace()); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("network namespace %s: %w", h.namespace(), err))
		}
		relayEnd, _ := h.relayEnds()
		failed = errors.Join(failed, removeLink(h.outer()), removeLink(relayEnd))
	}
	if !l.bridged {
		return failed
	}
	return errors.Join(failed, removeLink(bridgeName))
}

func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) { // it went with its namespace meanwhile
		return fmt.Errorf("link %s: %w", name, err)
	}
	return nil
}
