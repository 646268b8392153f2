package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A dual-stack lab has a second network, in which each machine's address ends in the same decimal digits as in the first:
// 10.89.0.12 is fd00:89::12.
var network6 = netip.MustParsePrefix("fd00:89::/64")

// dualStackFlags are what a server needs beyond a --node-ip of two addresses; machines that join learn them from the first.
var dualStackFlags = []string{"--cluster-cidr=10.244.0.0/16,fd00:244::/48", "--service-cidr=10.96.0.0/16,fd00:96::/112"}

// address6 is the one of the second network that goes with one of the first.
func address6(address netip.Addr) netip.Addr {
	bytes := network6.Addr().As16()
	digits, err := strconv.ParseUint(strconv.Itoa(int(address.As4()[3])), 16, 16)
	if err != nil {
		panic(fmt.Sprintf("lab: %s: %v", address, err)) // decimal digits are hexadecimal ones
	}
	bytes[14], bytes[15] = byte(digits>>8), byte(digits)
	return netip.AddrFrom16(bytes)
}

// nodeIP is the machine's --node-ip: one address, or one of each IP family.
func (h *Host) nodeIP() string {
	if h.Address6 == "" {
		return h.Address
	}
	return h.Address + "," + h.Address6
}

// isDualStack says whether the machines have addresses of both families.
func (l *Lab) isDualStack() bool { return len(l.Hosts) > 0 && l.Hosts[0].Address6 != "" }

// addAddresses gives a link an address of the lab's network, and in a dual-stack lab its second one. That one is usable at once:
// nobody else can have it, so that the kernel need not ask around for a second.
func addAddresses(link netlink.Link, address netip.Addr, dualStack bool) error {
	if err := addAddress(link, netip.PrefixFrom(address, network.Bits()), 0); err != nil || !dualStack {
		return err
	}
	return addAddress(link, netip.PrefixFrom(address6(address), network6.Bits()), unix.IFA_F_NODAD)
}

func addAddress(link netlink.Link, address netip.Prefix, flags int) error {
	parsed, err := netlink.ParseAddr(address.String())
	if err != nil {
		return err
	}
	parsed.Flags = flags
	return netlink.AddrAdd(link, parsed)
}

// addDefaultRoutes leads the machine's way out through this machine, in each of its families.
func (h *Host) addDefaultRoutes(link netlink.Link) error {
	gateways := []netip.Addr{frontAddress}
	if h.Address6 != "" {
		gateways = append(gateways, address6(frontAddress))
	}
	var failed error
	for _, gateway := range gateways {
		failed = errors.Join(failed, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: gateway.AsSlice()}))
	}
	return failed
}
