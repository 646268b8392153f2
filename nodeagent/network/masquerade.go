package network

import (
	"context"
	"fmt"
	"net/netip"

	"sigs.k8s.io/knftables"
)

// masquerade lets pods talk to the world under the node's address, with one nftables rule
// for the whole range. The bridge plugin would do it with rules per pod: twice the time for
// each attachment, and rules that stay behind when a namespace vanishes. The transaction
// replaces what an earlier start or another range left.
func (n *Network) masquerade(ctx context.Context, cidr netip.Prefix) error {
	family, word, multicast := knftables.IPv4Family, "ip", "224.0.0.0/4"
	if cidr.Addr().Is6() {
		family, word, multicast = knftables.IPv6Family, "ip6", "ff00::/8"
	}
	inside := cidr
	if n.cfg.ClusterCIDR.IsValid() && n.cfg.ClusterCIDR.Addr().Is6() == cidr.Addr().Is6() {
		inside = n.cfg.ClusterCIDR
	}
	nft, err := knftables.New(family, "kontiki-pods-"+n.cfg.Bridge)
	if err != nil {
		return fmt.Errorf("masquerade: %w", err)
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Add(&knftables.Chain{
		Name: "postrouting", Type: knftables.PtrTo(knftables.NATType),
		Hook: knftables.PtrTo(knftables.PostroutingHook), Priority: knftables.PtrTo(knftables.SNATPriority),
	})
	tx.Flush(&knftables.Chain{Name: "postrouting"})
	tx.Add(&knftables.Rule{Chain: "postrouting", Rule: knftables.Concat(
		word, "saddr", cidr, word, "daddr !=", inside, word, "daddr !=", multicast, "masquerade")})
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("masquerade: %w", err)
	}
	return nil
}
