package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddLocalAddress gives this machine an address that only it and its pods can reach, on the loopback interface. One that
// is there already is left as it is. It can be listened at when this returns.
func AddLocalAddress(address netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("local address %s: %w", address, err)
	}
	if err := netlink.AddrAdd(lo, hostAddress(address)); err != nil && !errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("local address %s: %w", address, err)
	}
	return nil
}

// RemoveLocalAddress takes back what AddLocalAddress gave; nothing if it is not there.
func RemoveLocalAddress(address netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("local address %s: %w", address, err)
	}
	if err := netlink.AddrDel(lo, hostAddress(address)); err != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("local address %s: %w", address, err)
	}
	return nil
}

// hostAddress is without duplicate address detection (RFC 4862 section 5.4): on the loopback interface the kernel finishes that at
// once, but on a thread of its own, and until then nobody can bind an IPv6 address.
func hostAddress(address netip.Addr) *netlink.Addr {
	bits := address.BitLen()
	a := &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(bits, bits)}, Scope: int(netlink.SCOPE_HOST)}
	if address.Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// mtuOf is the MTU of the interface that has an address; 0 if there is none, or it is the loopback interface.
func mtuOf(address netip.Addr) int {
	if !address.IsValid() || address.IsLoopback() {
		return 0
	}
	links, err := netlink.LinkList()
	if err != nil {
		return 0
	}
	for _, link := range links {
		addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if a.IP.Equal(address.AsSlice()) && link.Attrs().Flags&net.FlagLoopback == 0 {
				return link.Attrs().MTU
			}
		}
	}
	return 0
}
