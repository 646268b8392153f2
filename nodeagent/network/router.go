package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// reachWorld makes the node a router for its pods, as far as the machine has the programs. The caller holds mu.
func (n *Network) reachWorld(ctx context.Context, cidrs []netip.Prefix) error {
	switch natBackend() {
	case "nftables":
		// A kernel or container that refuses NAT still runs pods.
		n.nat = true
		for _, cidr := range cidrs {
			if err := n.masquerade(ctx, cidr); err != nil {
				n.nat = false
				n.log.Warn("traffic of pods is not masqueraded", "err", err)
			}
		}
	case "":
		n.log.Warn("neither nft nor iptables found: pods reach this node and each other, but their traffic is not masqueraded and host ports are refused")
	}
	for _, cidr := range cidrs {
		if err := enableForwarding(cidr.Addr().Is6()); err != nil {
			return err
		}
	}
	n.passFirewall(ctx, cidrs)
	return nil
}

// passFirewall has pods' traffic pass the rules of iptables. A machine where that fails still runs pods. The caller holds mu.
func (n *Network) passFirewall(ctx context.Context, cidrs []netip.Prefix) {
	ranges := make([]netip.Prefix, len(cidrs))
	for i, cidr := range cidrs {
		ranges[i] = n.clusterRange(cidr)
	}
	added, err := acceptForwarding(ctx, ranges)
	if added {
		n.log.Info("this machine filters what it forwards with iptables, whose chain FORWARD accepts pods now", "ranges", ranges)
	}
	if err != nil && err.Error() != n.blocked {
		n.log.Warn("what pods send and get may be dropped by the machine's own rules", "err", err)
	}
	n.blocked = ""
	if err != nil {
		n.blocked = err.Error()
	}
}

// enableForwarding lets the kernel route between the bridge and the rest of the world.
func enableForwarding(isIPv6 bool) error {
	if isIPv6 {
		if err := keepAdvertisedRoutes(); err != nil {
			return err
		}
	}
	return setSysctl(forwardingPath(isIPv6), "1")
}

func isForwarding(isIPv6 bool) bool {
	b, err := os.ReadFile(forwardingPath(isIPv6))
	return err == nil && strings.TrimSpace(string(b)) == "1"
}

func forwardingPath(isIPv6 bool) string {
	if isIPv6 {
		return "/proc/sys/net/ipv6/conf/all/forwarding"
	}
	return "/proc/sys/net/ipv4/ip_forward"
}

// keepAdvertisedRoutes has interfaces that take their IPv6 routes from routers go on with it: one that forwards does not
// otherwise (ip-sysctl, accept_ra), and the machine would lose its default route.
func keepAdvertisedRoutes() error {
	files, err := filepath.Glob("/proc/sys/net/ipv6/conf/*/accept_ra")
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue // the interface has gone
		}
		if err == nil && strings.TrimSpace(string(b)) == "1" {
			err = setSysctl(f, "2")
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("pod network: %w", err)
		}
	}
	return nil
}

func setSysctl(path, value string) error {
	if b, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(b)) == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	return nil
}

// EnableServices has packets between pods of one bridge pass through address translation: answers would go past it
// otherwise, and the client would not know them. The error says that the kernel cannot (module br_netfilter).
func EnableServices() error {
	if err := enableForwarding(false); err != nil {
		return err
	}
	const dir = "/proc/sys/net/bridge"
	if _, err := os.Stat(dir); err != nil {
		_ = exec.Command("modprobe", "br_netfilter").Run() // whether it helped is seen below
	}
	for _, name := range []string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("1"), 0o644); err != nil {
			return fmt.Errorf("pod network: %w", err)
		}
	}
	return nil
}
