package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
)

// Detach gives back what Attach took. It may be called again, and for a pod that was never attached. What is undone is what
// was done: libcni's cache has the configuration and the arguments of the ADD, also when the file has changed or gone since.
// It must come before the namespace goes: bridge (1.10) leaves its masquerading rules otherwise.
func (n *Network) Detach(ctx context.Context, pod Pod) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	cached, err := n.cni.GetCachedAttachments(pod.ID)
	if err != nil {
		return fmt.Errorf("CNI DEL: %w", err)
	}
	if len(cached) == 0 {
		return n.detachUnknown(ctx, pod)
	}
	var errs []error
	for _, a := range cached {
		a.NetNS = pod.NetNS
		errs = append(errs, n.detachCached(ctx, a))
	}
	return errors.Join(errs...)
}

// detachUnknown undoes an ADD that was cut off before libcni could note it, as far as the plugins find something.
func (n *Network) detachUnknown(ctx context.Context, pod Pod) error {
	if err := n.removeTornCache(pod.ID); err != nil {
		return fmt.Errorf("CNI DEL: %w", err)
	}
	pod.Annotations = nil // bandwidth goes with the interface, and a faulty annotation holds nobody here
	rt, err := runtimeConf(pod)
	if err != nil {
		return err
	}
	list, err := n.list(rt)
	if err != nil {
		return err
	}
	if err := n.cni.DelNetworkList(ctx, list, rt); err != nil {
		return fmt.Errorf("CNI DEL: %w", err)
	}
	return nil
}

// removeTornCache removes cache entries of an attachment that cannot be read (a power cut: libcni writes them in place).
// Every later DEL would fail at them.
func (n *Network) removeTornCache(id string) error {
	files, err := filepath.Glob(filepath.Join(n.cacheDir(), "results", "*-"+id+"-*"))
	if err != nil {
		return err
	}
	for _, f := range files {
		n.log.Warn("unreadable CNI cache entry removed", "path", f)
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) detachCached(ctx context.Context, a *libcni.NetworkAttachment) error {
	list, err := libcni.NetworkConfFromBytes(a.Config)
	if err != nil {
		return fmt.Errorf("CNI DEL: cached configuration of %s: %w", a.Network, err)
	}
	err = n.cni.DelNetworkList(ctx, list, &libcni.RuntimeConf{
		ContainerID: a.ContainerID, NetNS: a.NetNS, IfName: a.IfName, Args: a.CniArgs, CapabilityArgs: a.CapabilityArgs,
	})
	if err != nil {
		return fmt.Errorf("CNI DEL: %w", err)
	}
	return nil
}

// Check asks the plugins whether a pod's attachment is still as they made it (CNI CHECK).
func (n *Network) Check(ctx context.Context, pod Pod) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	cached, err := n.cni.GetCachedAttachments(pod.ID)
	if err != nil {
		return fmt.Errorf("CNI CHECK: %w", err)
	}
	for _, a := range cached {
		list, err := libcni.NetworkConfFromBytes(a.Config)
		if err != nil {
			return fmt.Errorf("CNI CHECK: cached configuration of %s: %w", a.Network, err)
		}
		if list.DisableCheck {
			continue
		}
		err = n.cni.CheckNetworkList(ctx, list, &libcni.RuntimeConf{
			ContainerID: a.ContainerID, NetNS: pod.NetNS, IfName: a.IfName, Args: a.CniArgs, CapabilityArgs: a.CapabilityArgs,
		})
		if err != nil && !errors.Is(err, libcni.ErrorCheckNotSupp) {
			return fmt.Errorf("CNI CHECK: %w", err)
		}
	}
	return nil
}

// GC frees what belongs to pods outside valid (sandbox ids): interfaces, rules and
// addresses that a crash or a reboot left behind.
func (n *Network) GC(ctx context.Context, valid []string) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	keep := map[string]bool{}
	args := &libcni.GCArgs{ValidAttachments: []types.GCAttachment{}}
	for _, id := range valid {
		keep[id] = true
		args.ValidAttachments = append(args.ValidAttachments, types.GCAttachment{ContainerID: id, IfName: ifName})
	}
	err := n.detachStale(ctx, keep)
	list, lerr := n.list(&libcni.RuntimeConf{})
	if lerr != nil {
		return errors.Join(err, lerr)
	}
	if list.DisableGC {
		return err
	}
	if list, lerr = withIPAM(list); lerr != nil {
		return errors.Join(err, lerr)
	}
	return errors.Join(err, n.cni.GCNetworkList(ctx, list, args))
}

// detachStale deletes cached attachments one by one, each with its own configuration: libcni's GC uses that of today for all.
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
		a.NetNS = "" // it is gone, or it is another's
		errs = append(errs, n.detachCached(ctx, a))
	}
	return errors.Join(errs...)
}

// withIPAM appends the address managers of the plugins as plugins of their own, for GC only:
// bridge (1.10) does not pass GC on to its IPAM plugin, so that nobody would free the
// address of an attachment whose ADD was cut off before libcni could note it.
func withIPAM(list *libcni.NetworkConfigList) (*libcni.NetworkConfigList, error) {
	longer := *list
	for _, p := range list.Plugins {
		if p.Network.IPAM.Type == "" {
			continue
		}
		var conf map[string]any
		if err := json.Unmarshal(p.Bytes, &conf); err != nil {
			return nil, err
		}
		conf["type"] = p.Network.IPAM.Type
		b, err := json.Marshal(conf)
		if err != nil {
			return nil, err
		}
		ipam, err := libcni.NetworkPluginConfFromBytes(b)
		if err != nil {
			return nil, err
		}
		longer.Plugins = append(longer.Plugins[:len(longer.Plugins):len(longer.Plugins)], ipam)
	}
	return &longer, nil
}
