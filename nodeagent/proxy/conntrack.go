package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// flowKey is where a UDP client sends to. An address that is not valid stands for all of this node: a node port.
type flowKey struct {
	address netip.Addr
	port    uint16
}

// flow is a UDP frontend with the endpoints that may have its packets.
type flow struct {
	flowKey
	endpoints []netip.AddrPort
}

// flowsOf lists the addresses of a UDP frontend.
func flowsOf(f *frontend, all []endpoint) (flows []flow) {
	var endpoints []netip.AddrPort
	for _, e := range usable(all) {
		endpoints = append(endpoints, e.address)
	}
	for _, address := range slices.Concat([]netip.Addr{f.cluster}, f.external, f.balanced) {
		flows = append(flows, flow{flowKey{address, f.port}, endpoints})
	}
	if f.nodePort != 0 {
		flows = append(flows, flow{flowKey{port: f.nodePort}, endpoints})
	}
	return flows
}

// forgetFlows removes what connection tracking remembers of UDP flows to these frontends, but to endpoints that they have
// (NW-05): a client that keeps sending from one port would go on to an endpoint that is gone, or to none, for as long as it
// sends. TCP needs no help, its connections end.
func forgetFlows(frontends map[flowKey]flow) error {
	if len(frontends) == 0 {
		return nil
	}
	filter := &staleFlows{frontends: frontends, own: ownAddresses()}
	var failed error
	for _, f := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, f, filter); err != nil && !errors.Is(err, unix.ENOENT) {
			failed = errors.Join(failed, fmt.Errorf("proxy: UDP flows: %w", err))
		}
	}
	return failed
}

// staleFlows says of each entry of connection tracking whether it is to be forgotten.
type staleFlows struct {
	frontends map[flowKey]flow
	own       map[netip.Addr]bool // addresses of this node
}

var _ netlink.CustomConntrackFilter = (*staleFlows)(nil)

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (s *staleFlows) MatchConntrackFlow(entry *netlink.ConntrackFlow) bool {
	if entry.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	to, answers := addressOf(entry.Forward.DstIP), netip.AddrPortFrom(addressOf(entry.Reverse.SrcIP), entry.Reverse.SrcPort)
	frontend, ok := s.frontends[flowKey{to, entry.Forward.DstPort}]
	if !ok && s.own[to] {
		frontend, ok = s.frontends[flowKey{port: entry.Forward.DstPort}]
	}
	return ok && !slices.Contains(frontend.endpoints, answers)
}

// ownAddresses are those of this machine's interfaces; none if they cannot be read.
func ownAddresses() map[netip.Addr]bool {
	own := map[netip.Addr]bool{}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			own[addressOf(n.IP)] = true
		}
	}
	return own
}

func addressOf(ip net.IP) netip.Addr {
	address, _ := netip.AddrFromSlice(ip)
	return address.Unmap()
}
