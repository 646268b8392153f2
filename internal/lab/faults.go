package lab

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"
	"sigs.k8s.io/knftables"
)

// faultTable is the nftables table, in each machine's namespace, that loses its packets.
const faultTable = prefix + "-faults"

// Partition cuts the lab into groups of machines that do not hear each other. Machines that no group names are in the
// first. What was cut before is healed. The error wraps ErrNoHost for a name that no machine has, and says if one is in
// two groups.
func (l *Lab) Partition(ctx context.Context, groups ...[]string) error {
	group := map[string]int{}
	for i, names := range groups {
		for _, name := range names {
			if _, err := l.Host(name); err != nil {
				return err
			}
			if _, twice := group[name]; twice {
				return fmt.Errorf("lab: %s is in two groups", name)
			}
			group[name] = i
		}
	}
	for _, h := range l.Hosts {
		var cut []string
		for _, other := range l.Hosts {
			if group[other.Name] != group[h.Name] {
				cut = append(cut, other.Address)
			}
		}
		if err := h.lose(ctx, cut, ""); err != nil {
			return err
		}
	}
	return nil
}

// Loss has a machine lose this share of the packets that come and go, in percent.
func (h *Host) Loss(ctx context.Context, percent int) error {
	if percent < 0 || percent > 100 {
		return fmt.Errorf("lab: a loss of %d percent is not from 0 to 100", percent)
	}
	if percent == 0 {
		return h.lose(ctx, nil, "")
	}
	return h.lose(ctx, nil, fmt.Sprintf("numgen random mod 100 < %d drop", percent))
}

// lose replaces the machine's table of faults: packets to and from these addresses are lost or, without any, those that the
// rule says. Without a rule, too, none are.
func (h *Host) lose(ctx context.Context, addresses []string, rule string) error {
	return h.inside(func() error {
		nft, err := knftables.New(knftables.IPv4Family, faultTable)
		if err != nil {
			return fmt.Errorf("%w: nftables: %w", ErrUnsupported, err)
		}
		tx := nft.NewTransaction()
		tx.Add(&knftables.Table{})
		tx.Delete(&knftables.Table{})
		if len(addresses) > 0 || rule != "" {
			tx.Add(&knftables.Table{})
			for _, side := range []struct {
				hook          knftables.BaseChainHook
				link, address string
			}{{knftables.PreroutingHook, "iifname", "ip saddr"}, {knftables.PostroutingHook, "oifname", "ip daddr"}} {
				chain := string(side.hook)
				tx.Add(&knftables.Chain{
					Name: chain, Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(side.hook),
					Priority: knftables.PtrTo(knftables.RawPriority),
				})
				if len(addresses) > 0 {
					rule = fmt.Sprintf("%s { %s } drop", side.address, strings.Join(addresses, ", "))
				}
				tx.Add(&knftables.Rule{Chain: chain, Rule: side.link + " " + inner + " " + rule})
			}
		}
		return nft.Run(ctx, tx)
	})
}

// Delay has the packets that a machine sends wait for so many milliseconds. The error wraps ErrUnsupported where the kernel
// has no netem.
func (h *Host) Delay(milliseconds int) error {
	if milliseconds < 0 || milliseconds > 60_000 {
		return fmt.Errorf("lab: a delay of %d ms is not from 0 to a minute", milliseconds)
	}
	return h.inside(func() error {
		eth, err := netlink.LinkByName(inner)
		if err != nil {
			return err
		}
		if milliseconds == 0 {
			return removeDelay(eth)
		}
		attributes := netlink.QdiscAttrs{LinkIndex: eth.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		netem := netlink.NewNetem(attributes, netlink.NetemQdiscAttrs{Latency: uint32(milliseconds) * 1000})
		if err := netlink.QdiscReplace(netem); err != nil {
			return fmt.Errorf("%w: delay packets (sch_netem): %w", ErrUnsupported, err)
		}
		return nil
	})
}

func removeDelay(eth netlink.Link) error {
	all, err := netlink.QdiscList(eth)
	if err != nil {
		return err
	}
	for _, q := range all {
		if q.Type() == "netem" {
			return netlink.QdiscDel(q)
		}
	}
	return nil
}

// Heal takes back all that was broken: partitions, loss, delays and pauses; machines that were killed run again.
func (l *Lab) Heal(ctx context.Context) error {
	var failed error
	for _, h := range l.Hosts {
		failed = errors.Join(failed, h.lose(ctx, nil, ""), h.Delay(0), h.Resume(), h.Start())
	}
	return failed
}

// HasNFT says whether this machine has the program that partitions need.
func HasNFT() bool {
	_, err := exec.LookPath("nft")
	return err == nil
}
