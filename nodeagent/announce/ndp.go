package announce

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/ipv6"
)

// Neighbour discovery (RFC 4861).
const (
	neighbourSolicitation, neighbourAdvertisement = 135, 136

	sourceLinkLayerOption, targetLinkLayerOption = 1, 2

	overrideFlag = 0x20
	hopLimit     = 255 // what has another was sent from afar, and is ignored
)

// advertise tells all nodes of a network where an address is (section 7.2.6).
func advertise(device *net.Interface, address netip.Addr) error {
	conn, err := openNDP(device)
	if err != nil {
		return err
	}
	defer conn.Close()
	return sendNDP(conn, device, neighbourAdvertisement, overrideFlag, targetLinkLayerOption, address, net.IPv6linklocalallnodes)
}

// solicit asks who has an address, until ctx ends.
func solicit(ctx context.Context, device *net.Interface, address netip.Addr) (bool, error) {
	conn, err := openNDP(device)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := sendNDP(conn, device, neighbourSolicitation, 0, sourceLinkLayerOption, address, solicitedNode(address)); err != nil {
		return false, err
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		return false, err
	}
	buffer := make([]byte, 1500)
	for {
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			return false, nil // the time is over: nobody answered
		}
		if p := buffer[:n]; n >= 32 && p[0] == neighbourAdvertisement && bytes.Equal(p[8:24], address.AsSlice()) &&
			p[24] == targetLinkLayerOption && !bytes.Equal(p[26:32], device.HardwareAddr) {
			return true, nil
		}
	}
}

func openNDP(device *net.Interface) (net.PacketConn, error) {
	conn, err := net.ListenPacket("ip6:ipv6-icmp", "::%"+device.Name)
	if err != nil {
		return nil, fmt.Errorf("NDP on %s: %w", device.Name, err)
	}
	p := ipv6.NewPacketConn(conn)
	for _, set := range []func() error{
		func() error { return p.SetMulticastInterface(device) },
		func() error { return p.SetMulticastHopLimit(hopLimit) },
		func() error { return p.SetHopLimit(hopLimit) },
	} {
		if err := set(); err != nil {
			conn.Close()
			return nil, fmt.Errorf("NDP on %s: %w", device.Name, err)
		}
	}
	return conn, nil
}

// sendNDP sends a message about an address with the device's own link-layer address. The kernel adds the checksum.
func sendNDP(conn net.PacketConn, device *net.Interface, kind, flags, option byte, address netip.Addr, to net.IP) error {
	message := append([]byte{kind, 0, 0, 0, flags, 0, 0, 0}, address.AsSlice()...)
	message = append(append(message, option, 1), device.HardwareAddr...)
	if _, err := conn.WriteTo(message, &net.IPAddr{IP: to, Zone: device.Name}); err != nil {
		return fmt.Errorf("NDP on %s: %w", device.Name, err)
	}
	return nil
}

// solicitedNode is the group that the holder of an address is in (RFC 4291 section 2.7.1).
func solicitedNode(address netip.Addr) net.IP {
	a := address.As16()
	return append(net.IP{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}, a[13:]...)
}
