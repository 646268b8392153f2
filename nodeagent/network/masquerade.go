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
	nft, err := n.masqueradeTable(cidr)
	if err != nil {
		return err
	}
	word, multicast, inside := "ip", "224.0.0.0/4", n.clusterRange(cidr)
	if cidr.Addr().Is6() {
		word, multicast = "ip6", "ff00::/8"
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Add(&knftables.Chain{
		Name: masqueradeChain, Type: knftables.PtrTo(knftables.NATType),
		Hook: knftables.PtrTo(knftables.PostroutingHook), Priority: knftables.PtrTo(knftables.SNATPriority),
	})
	tx.Flush(&knftables.Chain{Name: masqueradeChain})
	tx.Add(&knftables.Rule{Chain: masqueradeChain, Rule: knftables.Concat(
		word, "saddr", cidr, word, "daddr !=", inside, word, "daddr !=", multicast, "masquerade")})
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("masquerade: %w", err)
	}
	return nil
}

const masqueradeChain = "postrouting"

func (n *Network) masqueradeName() string { return "kontiki-pods-" + n.cfg.Bridge }

func (n *Network) masqueradeTable(cidr netip.Prefix) (knftables.Interface, error) {
	family := knftables.IPv4Family
	if cidr.Addr().Is6() {
		family = knftables.IPv6Family
	}
	nft, err := knftables.New(family, n.masqueradeName())
	if err != nil {
		return nil, fmt.Errorf("masquerade: %w", err)
	}
	return nft, nil
}

// clusterRange is that of the pods of all nodes, of the family of this node's range.
func (n *Network) clusterRange(cidr netip.Prefix) netip.Prefix {
	for _, c := range n.cfg.ClusterCIDRs {
		if c.Addr().Is6() == cidr.Addr().Is6() {
			return c
		}
	}
	return cidr
}

// damaged says whether a rule of masquerade has gone, or forwarding is off. The caller holds mu.
func (n *Network) damaged(ctx context.Context) bool {
	for _, cidr := range n.cidrs {
		if !isForwarding(cidr.Addr().Is6()) {
			return true
		}
		if !n.nat {
			continue
		}
		nft, err := n.masqueradeTable(cidr)
		if err != nil {
			continue
		}
		rules, err := nft.ListRules(ctx, masqueradeChain)
		if knftables.IsNotFound(err) || err == nil && len(rules) == 0 {
			return true
		}
	}
	return false
}
