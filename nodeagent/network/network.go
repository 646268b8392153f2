package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// ifName is the pod's interface, by Kubernetes' convention.
const ifName = "eth0"

// Config says where a Network finds and keeps things.
type Config struct {
	ConfDir  string // CNI network configurations
	BinDir   string // CNI plugin programs
	StateDir string // address leases and libcni's cache
	Bridge   string // of the default configuration; kontiki0 when empty
	// ClusterCIDR is the range of the pods of all nodes, to which pods keep their address. Invalid: the own pods' alone.
	ClusterCIDR netip.Prefix
	Log         *slog.Logger // nil discards
}

// Network attaches pods to the node's pod network. Its methods may be called concurrently.
type Network struct {
	cfg Config
	log *slog.Logger
	cni *libcni.CNIConfig

	mu   sync.Mutex // guards cidr
	cidr string
}

// PortMapping is one host port of a pod, in the form the portmap plugin reads.
type PortMapping struct {
	HostPort      int32  `json:"hostPort"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol"` // tcp, udp or sctp
	HostIP        string `json:"hostIP,omitempty"`
}

// Pod is what an attachment needs to know.
type Pod struct {
	ID                   string // of the sandbox: CNI's container id
	Namespace, Name, UID string
	NetNS                string // path of the pinned namespace; empty when it is gone
	Ports                []PortMapping
}

// New makes a Network. It touches only the state directory.
func New(cfg Config) (*Network, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Bridge == "" {
		cfg.Bridge = "kontiki0"
	}
	for _, dir := range []string{cfg.ConfDir, cfg.StateDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("pod network: %w", err)
		}
	}
	cni := libcni.NewCNIConfigWithCacheDir([]string{cfg.BinDir}, filepath.Join(cfg.StateDir, "cache"), nil)
	return &Network{cfg: cfg, log: cfg.Log, cni: cni}, nil
}

// SetPodCIDR tells the range of this node's pod addresses. It writes the default
// configuration unless somebody else's is there.
func (n *Network) SetPodCIDR(ctx context.Context, cidr string) error {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return fmt.Errorf("pod CIDR: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cidr == prefix.Masked().String() {
		return nil
	}
	ours, err := n.writeDefault(prefix.Masked())
	if err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	if ours {
		if err := n.reachWorld(ctx, prefix.Masked()); err != nil {
			return fmt.Errorf("pod network: %w", err)
		}
	}
	n.cidr = prefix.Masked().String()
	return nil
}

// reachWorld makes the node a router for its pods, as far as the machine has the programs.
func (n *Network) reachWorld(ctx context.Context, cidr netip.Prefix) error {
	switch natBackend() {
	case "nftables":
		// A kernel or container that refuses NAT still runs pods.
		if err := n.masquerade(ctx, cidr); err != nil {
			n.log.Warn("traffic of pods is not masqueraded", "err", err)
		}
	case "":
		n.log.Warn("neither nft nor iptables found: pods reach this node and each other, but their traffic is not masqueraded and host ports are refused")
	}
	return enableForwarding()
}

// enableForwarding lets the kernel route between the bridge and the rest of the world.
func enableForwarding() error {
	const path = "/proc/sys/net/ipv4/ip_forward"
	if b, err := os.ReadFile(path); err == nil && len(b) > 0 && b[0] == '1' {
		return nil
	}
	if err := os.WriteFile(path, []byte("1"), 0o644); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	return nil
}

// EnableServices has packets between pods of one bridge pass through address translation: answers would go past it
// otherwise, and the client would not know them. The error says that the kernel cannot (module br_netfilter).
func EnableServices() error {
	if err := enableForwarding(); err != nil {
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

// Ready is nil when pods can be attached.
func (n *Network) Ready() error {
	_, err := n.list(false)
	return err
}

// Attach connects the pod and returns its addresses, IPv4 before IPv6 as the plugin orders them.
// After an error nothing of the attachment is left.
func (n *Network) Attach(ctx context.Context, pod Pod) ([]netip.Addr, error) {
	list, err := n.list(len(pod.Ports) > 0)
	if err != nil {
		return nil, err
	}
	rt := runtimeConf(pod)
	result, err := n.cni.AddNetworkList(ctx, list, rt)
	if err != nil {
		// CNI spec, section 2: after a failed ADD the runtime should DEL.
		if derr := n.cni.DelNetworkList(context.WithoutCancel(ctx), list, rt); derr != nil {
			n.log.Warn("CNI DEL after a failed ADD failed too", "sandbox", pod.ID, "err", derr)
		}
		return nil, fmt.Errorf("CNI ADD: %w", err)
	}
	return addresses(result)
}

// Detach gives back what Attach took. It may be called again, and for a pod that was
// never attached. Ports that the caller does not know any more are taken from libcni's cache.
// It must come before the namespace goes: bridge (1.10) leaves its masquerading rules otherwise.
func (n *Network) Detach(ctx context.Context, pod Pod) error {
	rt := runtimeConf(pod)
	if rt.CapabilityArgs == nil {
		rt.CapabilityArgs = n.cachedCapabilities(pod.ID)
	}
	list, err := n.list(rt.CapabilityArgs["portMappings"] != nil)
	if err != nil {
		return err
	}
	if err := n.cni.DelNetworkList(ctx, list, rt); err != nil {
		return fmt.Errorf("CNI DEL: %w", err)
	}
	return nil
}

// cachedCapabilities are the plugin arguments of an earlier Attach, nil without one.
func (n *Network) cachedCapabilities(id string) map[string]any {
	cached, err := n.cni.GetCachedAttachments(id)
	if err != nil {
		return nil
	}
	for _, a := range cached {
		if a.CapabilityArgs != nil {
			return a.CapabilityArgs
		}
	}
	return nil
}

// GC frees what belongs to pods outside valid (sandbox ids): interfaces, rules and
// addresses that a crash or a reboot left behind.
func (n *Network) GC(ctx context.Context, valid []string) error {
	list, err := n.list(false)
	if err != nil {
		return err
	}
	args := &libcni.GCArgs{ValidAttachments: []types.GCAttachment{}}
	keep := map[string]bool{}
	for _, id := range valid {
		keep[id] = true
		args.ValidAttachments = append(args.ValidAttachments, types.GCAttachment{ContainerID: id, IfName: ifName})
	}
	err = n.detachStale(ctx, keep)
	if list, lerr := withIPAM(list); lerr == nil {
		err = errors.Join(err, n.cni.GCNetworkList(ctx, list, args))
	} else {
		err = errors.Join(err, lerr)
	}
	return err
}

// detachStale deletes cached attachments one by one, because libcni's own GC would use one
// plugin list for all of them, and only those with host ports have portmap's rules.
func (n *Network) detachStale(ctx context.Context, keep map[string]bool) error {
	cached, err := n.cni.GetCachedAttachments("")
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range cached {
		if keep[a.ContainerID] {
			continue
		}
		list, err := n.list(a.CapabilityArgs["portMappings"] != nil)
		if err != nil || list.Name != a.Network {
			continue
		}
		errs = append(errs, n.cni.DelNetworkList(ctx, list, &libcni.RuntimeConf{
			ContainerID: a.ContainerID, IfName: a.IfName,
			Args: a.CniArgs, CapabilityArgs: a.CapabilityArgs,
		}))
	}
	return errors.Join(errs...)
}

func runtimeConf(pod Pod) *libcni.RuntimeConf {
	rt := &libcni.RuntimeConf{
		ContainerID: pod.ID, NetNS: pod.NetNS, IfName: ifName,
		// The argument names are Kubernetes' convention (containerd and CRI-O pass the same).
		Args: [][2]string{
			{"IgnoreUnknown", "1"},
			{"K8S_POD_NAMESPACE", pod.Namespace},
			{"K8S_POD_NAME", pod.Name},
			{"K8S_POD_INFRA_CONTAINER_ID", pod.ID},
			{"K8S_POD_UID", pod.UID},
		},
	}
	if len(pod.Ports) > 0 {
		rt.CapabilityArgs = map[string]any{"portMappings": pod.Ports}
	}
	return rt
}

func addresses(result types.Result) ([]netip.Addr, error) {
	r, err := types100.GetResult(result)
	if err != nil {
		return nil, fmt.Errorf("CNI result: %w", err)
	}
	var out []netip.Addr
	for _, ip := range r.IPs {
		if addr, ok := netip.AddrFromSlice(ip.Address.IP); ok {
			out = append(out, addr.Unmap())
		}
	}
	if len(out) == 0 {
		return nil, errors.New("CNI result: the plugins gave no address")
	}
	return out, nil
}
