package main

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"kontiki/internal/hostcheck"
)

// networkOptions is what the whole cluster must agree on.
type networkOptions struct {
	clusterCIDR, serviceCIDR, clusterDomain string
	given                                   map[string]bool // the flags, of this and of the node's address, that somebody has set

	// What complete finds in clusterCIDR and serviceCIDR: an IPv4 network and, in a dual-stack cluster, an IPv6 one, in
	// the order of the flag.
	clusterCIDRs, serviceCIDRs []netip.Prefix
}

func (o *networkOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.clusterCIDR, "cluster-cidr", "10.244.0.0/16", "addresses of pods, which the other machines learn from the first server; each node gets a /24 of it; for dual stack an IPv6 network after a comma, of which each node gets a /64")
	fs.StringVar(&o.serviceCIDR, "service-cidr", "10.96.0.0/16", "addresses of Services, which the other machines learn from the first server; for dual stack an IPv6 network after a comma")
	fs.StringVar(&o.clusterDomain, "cluster-domain", "cluster.local", "DNS domain of Services, which the other machines learn from the first server")
}

// note remembers which flags were given: the cluster's settings do not replace those.
func (o *networkOptions) note(fs *pflag.FlagSet) {
	o.given = map[string]bool{}
	for _, name := range []string{"cluster-cidr", "service-cidr", "cluster-domain", "node-ip"} {
		o.given[name] = fs.Changed(name)
	}
}

func (o *networkOptions) complete() (err error) {
	if o.clusterCIDRs, err = checkCIDRs("cluster-cidr", o.clusterCIDR, 24, 32, 64); err != nil {
		return err
	}
	if o.serviceCIDRs, err = checkCIDRs("service-cidr", o.serviceCIDR, 28, 64, 124); err != nil {
		return err
	}
	if len(o.clusterCIDRs) != len(o.serviceCIDRs) {
		return wrong("service-cidr", "%s has not the IP families of --cluster-cidr %s", o.serviceCIDR, o.clusterCIDR)
	}
	for _, services := range o.serviceCIDRs {
		for _, pods := range o.clusterCIDRs {
			if pods.Overlaps(services) {
				return wrong("service-cidr", "%s overlaps --cluster-cidr %s", services, pods)
			}
		}
	}
	if faults := validation.IsDNS1123Subdomain(o.clusterDomain); len(faults) > 0 {
		return wrong("cluster-domain", "%q: %s", o.clusterDomain, faults[0])
	}
	return nil
}

// checkCIDRs parses an IPv4 network and perhaps an IPv6 network with a comma between them, in either order. The prefixes
// are at least 8 and at most bits4 bits long, or from min6 to max6.
func checkCIDRs(flag, value string, bits4, min6, max6 int) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for text := range strings.SplitSeq(value, ",") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, wrong(flag, "%q is not a network such as 10.0.0.0/16", text)
		}
		if prefix != prefix.Masked() {
			return nil, wrong(flag, "%s has host bits set: did you mean %s?", text, prefix.Masked())
		}
		shortest, longest := 8, bits4
		if prefix.Addr().Is6() {
			shortest, longest = min6, max6
		}
		if prefix.Bits() < shortest || prefix.Bits() > longest {
			return nil, wrong(flag, "%s: the prefix must be from /%d to /%d", prefix, shortest, longest)
		}
		out = append(out, prefix)
	}
	is4 := func(p netip.Prefix) bool { return p.Addr().Is4() }
	if !slices.ContainsFunc(out, is4) || len(out) > 2 || len(out) == 2 && is4(out[0]) == is4(out[1]) {
		return nil, wrong(flag, "%q is not an IPv4 network, or an IPv4 and an IPv6 network with a comma between them", value)
	}
	return out, nil
}

// second is the range of the other IP family, the zero value in a cluster of one.
func second(prefixes []netip.Prefix) netip.Prefix {
	if len(prefixes) < 2 {
		return netip.Prefix{}
	}
	return prefixes[1]
}

// serviceIPs are the first address of each network: that of the kubernetes Service is the first of them.
func (o *networkOptions) serviceIP() net.IP { return o.serviceCIDRs[0].Addr().Next().AsSlice() }

// dnsIPs are the tenth address of each network: those of the Service kube-dns, as kubeadm and k3s have it.
func (o *networkOptions) dnsIPs() (out []netip.Addr) {
	for _, cidr := range o.serviceCIDRs {
		address := cidr.Addr()
		for range 10 {
			address = address.Next()
		}
		out = append(out, address)
	}
	return out
}

// ownAddresses are the machine's addresses of the cluster's IP families, in their order, as far as it has them.
func (o *networkOptions) ownAddresses() string {
	var out []string
	for _, cidr := range o.clusterCIDRs {
		if cidr.Addr().Is4() {
			out = append(out, hostcheck.NodeIP().String())
		} else if ip := hostcheck.NodeIPv6(); ip != nil {
			out = append(out, ip.String())
		}
	}
	return strings.Join(out, ",")
}

// completeAddresses finds the node's addresses: at most one of each IP family, the first of them the one that others use.
func (o *nodeOptions) completeAddresses() error {
	o.ips = strings.Split(o.ipText, ",")
	families := map[bool]bool{}
	for _, text := range o.ips {
		ip := net.ParseIP(text)
		if ip == nil || ip.IsUnspecified() || ip.IsMulticast() {
			return wrong("node-ip", "%q is not an address of a machine", text)
		}
		if isIPv4 := ip.To4() != nil; families[isIPv4] {
			return wrong("node-ip", "%s has two addresses of one IP family", o.ipText)
		} else {
			families[isIPv4] = true
		}
	}
	o.ip = o.ips[0]
	return nil
}

// netIPs are the node's addresses for certificates.
func (o *nodeOptions) netIPs() (out []net.IP) {
	for _, text := range o.ips {
		out = append(out, net.ParseIP(text))
	}
	return out
}
