package lab

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/knftables"
)

// faultTable is the nftables table, in each machine's namespace, that loses its packets.
const faultTable = prefix + "-faults"

// losePackets replaces the machine's table by one that has its faults say; by none if they lose nothing.
func (h *Host) losePackets(ctx context.Context) error {
	return h.inside(func() error {
		nft, err := knftables.New(knftables.InetFamily, faultTable)
		if err != nil {
			return fmt.Errorf("%w: nftables: %w", ErrUnsupported, err)
		}
		tx := nft.NewTransaction()
		tx.Add(&knftables.Table{})
		tx.Delete(&knftables.Table{})
		if len(h.Faults.Cut) > 0 || h.Faults.Loss > 0 {
			tx.Add(&knftables.Table{})
			h.addChain(tx, knftables.PreroutingHook, "iifname", "saddr")
			h.addChain(tx, knftables.PostroutingHook, "oifname", "daddr")
		}
		return nft.Run(ctx, tx)
	})
}

// addChain loses packets in one direction, before anything else sees them.
func (h *Host) addChain(tx *knftables.Transaction, hook knftables.BaseChainHook, link, other string) {
	chain := string(hook)
	tx.Add(&knftables.Chain{
		Name: chain, Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(hook), Priority: knftables.PtrTo(knftables.RawPriority),
	})
	for family, cut := range h.cutAddresses() {
		tx.Add(&knftables.Rule{Chain: chain, Rule: fmt.Sprintf("%s %s %s %s { %s } drop", link, inner, family, other, strings.Join(cut, ", "))})
	}
	if h.Faults.Loss > 0 {
		tx.Add(&knftables.Rule{Chain: chain, Rule: fmt.Sprintf("%s %s numgen random mod 100 < %d drop", link, inner, h.Faults.Loss)})
	}
}
