package announce

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernel is the wire of this machine.
type kernel struct{}

// hold puts the address on the interface for so long. It is deprecated from the start, so that nothing is sent from it but
// answers, and IPv6 does not look for duplicates: that takes a second.
func (kernel) hold(address netip.Addr, seconds int) error {
	link, err := linkFor(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(link, hostAddress(address, seconds)); err != nil {
		return fmt.Errorf("on %s: %w", link.Attrs().Name, err)
	}
	return nil
}

// has says whether the address is on the interface for a time, as hold puts it there.
func (kernel) has(address netip.Addr) (bool, error) {
	link, err := linkFor(address)
	if err != nil {
		return false, err
	}
	all, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return false, fmt.Errorf("on %s: %w", link.Attrs().Name, err)
	}
	wanted := hostAddress(address, 0).IPNet.String()
	return slices.ContainsFunc(all, func(a netlink.Addr) bool {
		return a.IPNet.String() == wanted && a.ValidLft > 0 && a.ValidLft <= lifetimeSeconds
	}), nil
}

func (kernel) drop(address netip.Addr) error {
	link, err := linkFor(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrDel(link, hostAddress(address, 0)); err != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("on %s: %w", link.Attrs().Name, err)
	}
	return nil
}

func hostAddress(address netip.Addr, seconds int) *netlink.Addr {
	bits := address.BitLen()
	a := &netlink.Addr{
		IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(bits, bits)}, ValidLft: seconds,
	}
	if address.Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// linkFor is the interface that leads to the address's network: one that has an address in it or, if there is none, that of
// the default route.
func linkFor(address netip.Addr) (netlink.Link, error) {
	family := netlink.FAMILY_V4
	if address.Is6() {
		family = netlink.FAMILY_V6
	}
	addresses, err := netlink.AddrList(nil, family)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if ones, bits := a.Mask.Size(); ones < bits && a.Contains(address.AsSlice()) {
			return netlink.LinkByIndex(a.LinkIndex)
		}
	}
	routes, err := netlink.RouteListFiltered(family, &netlink.Route{Dst: nil}, netlink.RT_FILTER_DST)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if r.LinkIndex > 0 {
			return netlink.LinkByIndex(r.LinkIndex)
		}
	}
	return nil, errors.New("no interface is in its network, and there is no default route")
}

// deviceFor is linkFor, as package net has it.
func deviceFor(address netip.Addr) (*net.Interface, error) {
	link, err := linkFor(address)
	if err != nil {
		return nil, err
	}
	device := &net.Interface{Index: link.Attrs().Index, Name: link.Attrs().Name, HardwareAddr: link.Attrs().HardwareAddr}
	if len(device.HardwareAddr) != 6 {
		return nil, fmt.Errorf("%s is no Ethernet interface", device.Name)
	}
	return device, nil
}
