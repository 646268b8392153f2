package main

import (
	"net/netip"

	"github.com/spf13/pflag"
)

// loadBalancerOptions is where Services of type LoadBalancer have their addresses from.
type loadBalancerOptions struct {
	texts []string
	cidrs []netip.Prefix
}

func (o *loadBalancerOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.texts, "load-balancer-cidr", nil,
		"addresses for Services of type LoadBalancer, of networks that the nodes are in, the same on all servers; a node announces each by ARP or NDP (default: none, others give them addresses)")
}

// complete parses the ranges, which must not be those of pods or Services.
func (o *loadBalancerOptions) complete(network *networkOptions) error {
	const flag = "load-balancer-cidr"
	o.cidrs = nil
	for _, text := range o.texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return wrong(flag, "%q is not a network such as 192.0.2.64/26", text)
		}
		if prefix != prefix.Masked() {
			return wrong(flag, "%s has host bits set: did you mean %s?", text, prefix.Masked())
		}
		for _, other := range append(network.clusterCIDRs[:len(network.clusterCIDRs):len(network.clusterCIDRs)], network.serviceCIDRs...) {
			if prefix.Overlaps(other) {
				return wrong(flag, "%s overlaps the addresses of pods or Services, %s", prefix, other)
			}
		}
		o.cidrs = append(o.cidrs, prefix)
	}
	return nil
}
