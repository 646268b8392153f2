package routes

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// deviceName is the VXLAN device's.
	deviceName = "kontiki-vxlan"
	// vxlanID is the network identifier in its frames.
	vxlanID = 4107
	// vxlanPort is the UDP port that frames are sent to (RFC 7348 section 5).
	vxlanPort = 4789
	// overhead is what VXLAN adds to a packet: Ethernet, VXLAN, UDP and an IPv4 (50) or IPv6 header (70).
	overheadIPv4, overheadIPv6 = 50, 70
)

// device is the VXLAN device, made when a peer needs it.
type device struct {
	self Node
	link int // 0: not opened
}

// open makes the device, if it is not there as it should be, and returns its index.
func (d *device) open() (link int, err error) {
	if d.link != 0 {
		return d.link, nil
	}
	wanted, err := d.wanted()
	if err != nil {
		return 0, err
	}
	present, err := netlink.LinkByName(deviceName)
	if err == nil && !sameDevice(present, wanted) {
		if err := netlink.LinkDel(present); err != nil {
			return 0, fmt.Errorf("%s, to be made anew: %w", deviceName, err)
		}
		present = nil
	}
	if present == nil || err != nil {
		if err := netlink.LinkAdd(wanted); err != nil {
			return 0, fmt.Errorf("%s: %w", deviceName, err)
		}
		if present, err = netlink.LinkByName(deviceName); err != nil {
			return 0, fmt.Errorf("%s: %w", deviceName, err)
		}
	}
	if err := netlink.LinkSetUp(present); err != nil {
		return 0, fmt.Errorf("%s: %w", deviceName, err)
	}
	// The node's own packets into the tunnel have an address of its pod range, so that answers come back through it.
	for _, cidr := range d.self.PodCIDRs {
		first := cidr.Masked().Addr()
		address := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(first, first.BitLen()))}
		if err := netlink.AddrAdd(present, address); err != nil && !errors.Is(err, syscall.EEXIST) {
			return 0, fmt.Errorf("%s: %w", deviceName, err)
		}
	}
	d.link = present.Attrs().Index
	return d.link, nil
}

// wanted describes the device: it sends from the node's first address, over the link that has it.
func (d *device) wanted() (*netlink.Vxlan, error) {
	if len(d.self.Addresses) == 0 || len(d.self.PodCIDRs) == 0 {
		return nil, errors.New("this node has no address or no pod range yet")
	}
	source := d.self.Addresses[0].Unmap()
	under, err := linkOf(source)
	if err != nil {
		return nil, err
	}
	overhead := overheadIPv4
	if source.Is6() {
		overhead = overheadIPv6
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU = deviceName, under.Attrs().MTU-overhead
	attributes.HardwareAddr = hardwareAddress(d.self.PodCIDRs)
	return &netlink.Vxlan{
		LinkAttrs: attributes, VxlanId: vxlanID, VtepDevIndex: under.Attrs().Index, SrcAddr: source.AsSlice(), Port: vxlanPort,
	}, nil
}

// linkOf finds the link that has an address.
func linkOf(address netip.Addr) (netlink.Link, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(addresses, func(a netlink.Addr) bool { return a.IP.Equal(address.AsSlice()) }) {
			return link, nil
		}
	}
	return nil, fmt.Errorf("no interface has the node's address %s", address)
}

func sameDevice(present netlink.Link, wanted *netlink.Vxlan) bool {
	p, ok := present.(*netlink.Vxlan)
	return ok && p.VxlanId == wanted.VxlanId && p.VtepDevIndex == wanted.VtepDevIndex && p.Port == wanted.Port &&
		p.SrcAddr.Equal(wanted.SrcAddr) && p.MTU == wanted.MTU && bytes.Equal(p.HardwareAddr, wanted.HardwareAddr)
}

// outer picks the address of a peer that frames are sent to: one of the family that the device sends from.
func (d *device) outer(addresses []netip.Addr) netip.Addr {
	if a := addressOf(addresses, d.self.Addresses[0].Unmap().Is6()); a.IsValid() {
		return a
	}
	return addresses[0].Unmap()
}

// hardwareAddress is a link-layer address that follows from a node's ranges: for 10.244.2.0/24 it is 0a:58:0a:f4:02:00.
func hardwareAddress(cidrs []netip.Prefix) net.HardwareAddr {
	first := cidrs[0].Masked().Addr()
	if first.Is4() {
		return append(net.HardwareAddr{0x0a, 0x58}, first.AsSlice()...)
	}
	sum := fnv.New32a()
	_, _ = sum.Write(first.AsSlice())
	return append(net.HardwareAddr{0x0a, 0x58}, sum.Sum(nil)...)
}

// sync writes the neighbour and forwarding entries of the hops through the device, and removes others. A device that no hop
// needs goes.
func (d *device) sync(hops []hop) error {
	if d.link == 0 {
		if link, err := netlink.LinkByName(deviceName); err == nil {
			return netlink.LinkDel(link)
		}
		return nil
	}
	wanted := map[string]bool{}
	var failed error
	for _, h := range hops {
		if h.tunnel == nil {
			continue
		}
		for _, entry := range []*netlink.Neigh{d.neighbour(h), d.forwarding(h)} {
			wanted[neighbourKey(entry)] = true
			if err := netlink.NeighSet(entry); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: entry for %s: %w", deviceName, h.cidr, err))
			}
		}
	}
	for _, f := range []int{unix.AF_INET, unix.AF_INET6, unix.AF_BRIDGE} {
		present, err := netlink.NeighList(d.link, f)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", deviceName, err))
		}
		for _, entry := range present {
			if entry.State&netlink.NUD_PERMANENT == 0 || wanted[neighbourKey(&entry)] {
				continue
			}
			entry.Family = f
			if f == unix.AF_BRIDGE {
				entry.Flags = netlink.NTF_SELF
			}
			if err := netlink.NeighDel(&entry); err != nil && !errors.Is(err, syscall.ENOENT) {
				failed = errors.Join(failed, fmt.Errorf("%s: old entry %s: %w", deviceName, entry.HardwareAddr, err))
			}
		}
	}
	return failed
}

// neighbour says which link-layer address the gateway has.
func (d *device) neighbour(h hop) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: d.link, State: netlink.NUD_PERMANENT, Type: unix.RTN_UNICAST, IP: h.gateway.AsSlice(), HardwareAddr: h.tunnel.hardware,
	}
}

// forwarding says which machine has the link-layer address.
func (d *device) forwarding(h hop) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: d.link, State: netlink.NUD_PERMANENT, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF,
		IP: h.tunnel.address.AsSlice(), HardwareAddr: h.tunnel.hardware,
	}
}

func neighbourKey(n *netlink.Neigh) string { return n.IP.String() + " " + n.HardwareAddr.String() }
