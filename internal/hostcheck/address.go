package hostcheck

import (
	"net"
	"strings"
)

// NodeIP picks the address under which other machines most likely reach this one: the one that the
// default route uses, or else the first of an interface that is up and not Kontiki's own or a
// container's. On a machine with loopback alone it is 127.0.0.1.
func NodeIP() net.IP {
	// Connecting a UDP socket sends nothing; it only asks the kernel for the route. The address is
	// one that nobody has (RFC 5737).
	if conn, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		defer conn.Close()
		if ip := conn.LocalAddr().(*net.UDPAddr).IP; usable(ip) {
			return ip
		}
	}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 || inner(i.Name) {
			continue
		}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && usable(n.IP) {
				return n.IP
			}
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

// NodeIPv6 is the address of the default route of IPv6; nil without one.
func NodeIPv6() net.IP {
	conn, err := net.Dial("udp6", "[2001:db8::1]:9") // nobody's (RFC 3849)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if ip := conn.LocalAddr().(*net.UDPAddr).IP; usable(ip) {
		return ip
	}
	return nil
}

func usable(ip net.IP) bool { return ip.IsGlobalUnicast() }

// inner reports whether an interface leads to containers on this machine.
func inner(name string) bool {
	for _, prefix := range []string{"kontiki", "cni", "veth", "docker", "br-", "virbr"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
