package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"kontiki/nodeagent/nftables"
)

// ifName is the pod's interface, by Kubernetes' convention.
const ifName = "eth0"

// Config says where a Network finds and keeps things.
type Config struct {
	ConfDir  string   // CNI network configurations
	BinDirs  []string // CNI plugin programs; the first that has one counts
	StateDir string   // address leases and libcni's cache
	Bridge   string   // of the default configuration; kontiki0 when empty
	// Address is the node's own: the default configuration gives pods the MTU of its interface. Invalid: the kernel's 1500.
	Address netip.Addr
	// Foreign leaves the configuration to others: none is written, and the node is not made a router.
	Foreign bool
	// ClusterCIDRs are the ranges of the pods of all nodes, to which pods keep their address. Without one of a family: the
	// own pods' alone.
	ClusterCIDRs []netip.Prefix
	// Timeout ends the plugins of one ADD, DEL, CHECK, GC or STATUS; a minute when zero.
	Timeout time.Duration
	Log     *slog.Logger // nil discards
}

// Network attaches pods to the node's pod network. Its methods may be called concurrently.
type Network struct {
	cfg       Config
	log       *slog.Logger
	cni       *libcni.CNIConfig
	readiness readiness

	mu    sync.Mutex     // guards what follows; held while it is put into force
	cidrs []netip.Prefix // of the default configuration, once it is written
	ours  bool           // it is in force
	nat   bool           // with masquerading
	// blocked is why iptables may drop pods' traffic, told already; "" if nothing is known.
	blocked string
}

// Pod is what an attachment needs to know.
type Pod struct {
	ID                   string // of the sandbox: CNI's container id
	Namespace, Name, UID string
	NetNS                string // path of the pinned namespace; empty when it is gone
	Ports                []PortMapping
	Annotations          map[string]string // of the pod: bandwidth
	DNS                  DNS
}

// New makes a Network. It touches only the configuration and state directories.
func New(cfg Config) (*Network, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Bridge == "" {
		cfg.Bridge = "kontiki0"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	for _, dir := range []string{cfg.ConfDir, cfg.StateDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("pod network: %w", err)
		}
	}
	n := &Network{cfg: cfg, log: cfg.Log}
	n.cni = libcni.NewCNIConfigWithCacheDir(cfg.BinDirs, n.cacheDir(), &plugins{})
	return n, nil
}

func (n *Network) cacheDir() string { return filepath.Join(n.cfg.StateDir, "cache") }

// SetPodCIDR tells the ranges of this node's pod addresses, at most one of each IP family, with a comma between them as in
// CRI's UpdateRuntimeConfig. It writes the default configuration unless somebody else's is there.
func (n *Network) SetPodCIDR(ctx context.Context, text string) error {
	cidrs, err := parseCIDRs(text)
	if err != nil {
		return fmt.Errorf("pod CIDR: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cfg.Foreign || slices.Equal(n.cidrs, cidrs) {
		return nil
	}
	return n.putIntoForce(ctx, cidrs)
}

func parseCIDRs(text string) (cidrs []netip.Prefix, err error) {
	for part := range strings.SplitSeq(text, ",") {
		cidr, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(cidrs, func(c netip.Prefix) bool { return c.Addr().Is4() == cidr.Addr().Is4() }) {
			return nil, fmt.Errorf("%s has two ranges of one IP family", text)
		}
		cidrs = append(cidrs, cidr.Masked())
	}
	return cidrs, nil
}

// putIntoForce writes the default configuration and what belongs to it. The caller holds mu.
func (n *Network) putIntoForce(ctx context.Context, cidrs []netip.Prefix) (err error) {
	if n.ours, err = n.writeDefault(cidrs); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	if n.ours {
		if err := n.reachWorld(ctx, cidrs); err != nil {
			return fmt.Errorf("pod network: %w", err)
		}
	}
	n.cidrs = cidrs
	return nil
}

// keepPeriod is how soon Keep repairs what somebody took away and nobody tells of: files, and parameters of the kernel.
const keepPeriod = 10 * time.Second

// Keep puts the default configuration, the masquerading and the forwarding back when somebody took them away (nft flush
// ruleset), and lets pods through a firewall that came later (Docker's start), until ctx ends.
func (n *Network) Keep(ctx context.Context) {
	flushed := make(chan struct{}, 1) // holds one token while the masquerading may have gone
	watcher := nftables.NewWatcher(masqueradeChain, n.masqueradeName())
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		watcher.Run(ctx, func() {
			select {
			case flushed <- struct{}{}:
			default:
			}
		})
	})
	last := ""
	for ctx.Err() == nil {
		select {
		case <-flushed:
		case <-time.After(keepPeriod):
		case <-ctx.Done():
			return
		}
		err := n.Repair(ctx)
		if err == nil {
			last = ""
		} else if err.Error() != last && ctx.Err() == nil {
			last = err.Error()
			n.log.Warn("pod network could not be repaired", "err", err)
		}
	}
}

// Repair is what Keep does each time.
func (n *Network) Repair(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.cidrs) == 0 {
		return nil
	}
	if files, err := confFiles(n.cfg.ConfDir); err != nil {
		return err
	} else if n.ours && len(files) > 0 && !n.damaged(ctx) {
		n.passFirewall(ctx, n.cidrs)
		return nil
	} else if !n.ours && len(files) > 0 {
		return nil // somebody else's
	}
	n.log.Warn("pod network is made anew: somebody took it away")
	return n.putIntoForce(ctx, n.cidrs)
}

// Attach connects the pod and returns its addresses, in the order of the plugins.
// After an error nothing of the attachment is left.
func (n *Network) Attach(ctx context.Context, pod Pod) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	rt, err := runtimeConf(pod)
	if err != nil {
		return nil, err
	}
	list, err := n.list(rt)
	if err != nil {
		return nil, err
	}
	result, err := n.cni.AddNetworkList(ctx, list, rt)
	var addrs []netip.Addr
	if err == nil {
		addrs, err = addresses(result)
	}
	if err != nil {
		n.undo(ctx, list, rt)
		return nil, fmt.Errorf("CNI ADD: %w", err)
	}
	return addrs, nil
}

// undo has the plugins forget a failed ADD (CNI spec, section 2: the runtime should DEL).
func (n *Network) undo(ctx context.Context, list *libcni.NetworkConfigList, rt *libcni.RuntimeConf) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.cfg.Timeout)
	defer cancel()
	if err := n.cni.DelNetworkList(ctx, list, rt); err != nil {
		n.log.Warn("CNI DEL after a failed ADD failed too", "sandbox", rt.ContainerID, "err", err)
	}
}

// addresses are those of the pod's interface: a plugin may name the host's end of a pair, too.
func addresses(result types.Result) ([]netip.Addr, error) {
	r, err := types100.GetResult(result)
	if err != nil {
		return nil, fmt.Errorf("CNI result: %w", err)
	}
	var out []netip.Addr
	for _, ip := range r.IPs {
		if i := ip.Interface; i != nil && *i >= 0 && *i < len(r.Interfaces) && r.Interfaces[*i].Sandbox == "" {
			continue
		}
		if addr, ok := netip.AddrFromSlice(ip.Address.IP); ok {
			out = append(out, addr.Unmap())
		}
	}
	if len(out) == 0 {
		return nil, errors.New("CNI result: the plugins gave no address")
	}
	return out, nil
}
