package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A packet that any table of the kernel drops is lost, whatever another accepts. Docker sets the policy of iptables' chain
// FORWARD to DROP, and firewalls end it with REJECT; then pods reach neither each other nor the world. The one remedy is a rule
// in that very chain, as those of the CNI plugin "firewall", but for all pods at once: theirs are for each pod, let no pod of
// another node in, and stay behind when a namespace vanishes. There are two such chains for each IP family, iptables-nft's and
// iptables-legacy's, which know nothing of each other.

// acceptComment marks the rules as Kontiki's.
const acceptComment = "kontiki-pods"

// acceptForwarding has iptables accept what pods send and what is sent to them, where the machine uses it for what is
// forwarded. Whom pods hear is for NetworkPolicies to say: these are in a table of their own, and drop as before.
func acceptForwarding(ctx context.Context, ranges []netip.Prefix) (added bool, err error) {
	for _, isIPv6 := range []bool{false, true} {
		var wanted []string
		for _, r := range ranges {
			if r.Addr().Is6() == isIPv6 {
				wanted = append(wanted, acceptRule("-s", r), acceptRule("-d", r))
			}
		}
		if len(wanted) == 0 {
			continue
		}
		for _, program := range iptablesPrograms(ctx, isIPv6) {
			more, failed := program.accept(ctx, wanted)
			added, err = added || more, errors.Join(err, failed)
		}
	}
	return added, err
}

// RemoveAccepting takes away what acceptForwarding has added to the rules of others.
func RemoveAccepting(ctx context.Context) (err error) {
	for _, isIPv6 := range []bool{false, true} {
		for _, program := range iptablesPrograms(ctx, isIPv6) {
			_, failed := program.accept(ctx, nil)
			err = errors.Join(err, failed)
		}
	}
	return err
}

// acceptRule is one as iptables lists it.
func acceptRule(direction string, r netip.Prefix) string {
	return fmt.Sprintf("%s %s -m comment --comment %s -j ACCEPT", direction, r.Masked(), acceptComment)
}

// iptables is one of the programs; its name.
type iptables string

// accept makes the marked rules of the chain those that are wanted. A chain that does nothing is left as it is.
func (p iptables) accept(ctx context.Context, wanted []string) (added bool, err error) {
	listed, err := p.run(ctx, "-S FORWARD")
	if err != nil {
		return false, err
	}
	var ours, others []string
	for line := range strings.Lines(listed) {
		rule, isRule := strings.CutPrefix(strings.TrimSpace(line), "-A FORWARD ")
		switch {
		case !isRule:
			others = append(others, strings.TrimSpace(line))
		case strings.Contains(rule, acceptComment):
			ours = append(ours, rule)
		default:
			others = append(others, rule)
		}
	}
	if slices.Equal(others, []string{"-P FORWARD ACCEPT"}) {
		wanted = nil
	}
	for i, rule := range ours {
		if !slices.Contains(wanted, rule) || slices.Contains(ours[:i], rule) {
			_, failed := p.run(ctx, "-D FORWARD "+rule)
			err = errors.Join(err, failed)
		}
	}
	for _, rule := range wanted {
		if !slices.Contains(ours, rule) {
			_, failed := p.run(ctx, "-I FORWARD "+rule)
			added, err = added || failed == nil, errors.Join(err, failed)
		}
	}
	return added, err
}

// run calls the program; it waits for others that change rules, as long as ctx lets it.
func (p iptables) run(ctx context.Context, arguments string) (string, error) {
	out, err := exec.CommandContext(ctx, string(p), append([]string{"-w"}, strings.Fields(arguments)...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %.300s", p, arguments, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// iptablesPrograms are those by which the machine's chains FORWARD of a family are changed; none where it has no iptables.
// iptables-legacy would make its tables when it is asked for them, so it is not, where the kernel has none.
func iptablesPrograms(ctx context.Context, isIPv6 bool) (programs []iptables) {
	name, tables := "iptables", "/proc/thread-self/net/ip_tables_names"
	if isIPv6 {
		name, tables = "ip6tables", "/proc/thread-self/net/ip6_tables_names"
	}
	loaded, _ := os.ReadFile(tables)
	hasLegacy := slices.Contains(strings.Fields(string(loaded)), "filter")
	there := func(name string) bool { _, err := exec.LookPath(name); return err == nil }
	if there(name + "-nft") {
		programs = append(programs, iptables(name+"-nft"))
	}
	if there(name+"-legacy") && hasLegacy {
		programs = append(programs, iptables(name+"-legacy"))
	}
	if !there(name+"-nft") && !there(name+"-legacy") && there(name) {
		version, _ := iptables(name).run(ctx, "-V")
		if hasLegacy || strings.Contains(version, "nf_tables") {
			programs = append(programs, iptables(name))
		}
	}
	return programs
}
