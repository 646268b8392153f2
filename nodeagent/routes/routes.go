package routes

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

// protocol marks routes as this package's (the numbers above 100 are free, rtnetlink(7)).
const protocol = 107

// Peer is another node.
type Peer struct {
	Name      string
	Addresses []netip.Addr   // under which this node reaches it; at most one of each IP family counts
	PodCIDRs  []netip.Prefix // of its pods
}

// Node is this node.
type Node struct {
	Addresses []netip.Addr
	PodCIDRs  []netip.Prefix
}

// hop is how packets get to a range.
type hop struct {
	cidr    netip.Prefix
	gateway netip.Addr
	link    int
	tunnel  *tunnelPeer // nil: the gateway is a neighbour
}

// tunnelPeer is the other end of the VXLAN device.
type tunnelPeer struct {
	hardware net.HardwareAddr
	address  netip.Addr // where frames for it are sent
}

// Apply makes the kernel's routes those to peers. It does what it can: the error names the peers that are not reached.
func Apply(self Node, peers []Peer) error {
	device := &device{self: self}
	var hops []hop
	var failed error
	for _, p := range peers {
		for _, cidr := range p.PodCIDRs {
			h, err := hopTo(device, p, cidr.Masked())
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("route to the pods of node %s: %w", p.Name, err))
				continue
			}
			hops = append(hops, h)
		}
	}
	return errors.Join(failed, device.sync(hops), writeRoutes(hops))
}

// hopTo finds the way to a range of a peer.
func hopTo(device *device, p Peer, cidr netip.Prefix) (hop, error) {
	if direct := addressOf(p.Addresses, cidr.Addr().Is6()); direct.IsValid() {
		found, err := netlink.RouteGet(direct.AsSlice())
		if err != nil {
			return hop{}, err
		}
		if len(found) > 0 && found[0].Gw == nil && found[0].Via == nil {
			return hop{cidr: cidr, gateway: direct, link: found[0].LinkIndex}, nil
		}
	}
	if len(p.Addresses) == 0 {
		return hop{}, errors.New("it has no address")
	}
	link, err := device.open()
	if err != nil {
		return hop{}, err
	}
	return hop{
		cidr: cidr, gateway: cidr.Addr(), link: link,
		tunnel: &tunnelPeer{hardware: hardwareAddress(p.PodCIDRs), address: device.outer(p.Addresses)},
	}, nil
}

// addressOf is the first address of a family, the zero one if there is none.
func addressOf(addresses []netip.Addr, isIPv6 bool) netip.Addr {
	for _, a := range addresses {
		if a.Unmap().Is6() == isIPv6 {
			return a.Unmap()
		}
	}
	return netip.Addr{}
}

// writeRoutes adds the routes of hops that are not there, and removes what this package wrote otherwise. What is right is
// not written again: whoever follows changes would never come to rest.
func writeRoutes(hops []hop) error {
	var failed error
	there := map[hopKey]bool{}
	for _, f := range []int{unix.AF_INET, unix.AF_INET6} {
		present, err := netlink.RouteListFiltered(f, &netlink.Route{Protocol: protocol}, netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("list routes: %w", err))
		}
		for _, r := range present {
			key := keyOf(r)
			if slices.ContainsFunc(hops, func(h hop) bool { return keyOf(*h.route()) == key }) {
				there[key] = true
				continue
			}
			if err := netlink.RouteDel(&r); err != nil && !errors.Is(err, syscall.ESRCH) {
				failed = errors.Join(failed, fmt.Errorf("remove route to %s: %w", r.Dst, err))
			}
		}
	}
	for _, h := range hops {
		if r := h.route(); !there[keyOf(*r)] {
			if err := netlink.RouteReplace(r); err != nil {
				failed = errors.Join(failed, fmt.Errorf("route to %s: %w", h.cidr, err))
			}
		}
	}
	return failed
}

// route is a hop as the kernel has it.
func (h hop) route() *netlink.Route {
	r := &netlink.Route{
		Dst: ipNet(h.cidr), Gw: h.gateway.AsSlice(), LinkIndex: h.link, Protocol: protocol,
	}
	if h.tunnel != nil {
		r.Flags = int(netlink.FLAG_ONLINK)
	}
	return r
}

// hopKey is what makes two routes the same.
type hopKey struct {
	destination, gateway string
	link                 int
}

func keyOf(r netlink.Route) hopKey {
	key := hopKey{gateway: r.Gw.String(), link: r.LinkIndex}
	if r.Dst != nil {
		key.destination = r.Dst.String()
	}
	return key
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
