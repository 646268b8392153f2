package network

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
)

// defaultName is both the network's name and, with a number, its file's. A file of this
// name is ours to rewrite; any other makes us keep out.
const (
	defaultName = "kontiki"
	defaultFile = "10-kontiki.conflist"
	cniVersion  = "1.1.0"
)

// list reads the configuration in force: the first file by name, as kubelet's runtimes do. To our own it appends what the pod
// needs beside: plugins that others do without cost them nothing then.
func (n *Network) list(rt *libcni.RuntimeConf) (*libcni.NetworkConfigList, error) {
	path, err := n.confFile()
	if err != nil {
		return nil, err
	}
	list, err := readList(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotReady, path, err)
	}
	var extra []map[string]any
	if filepath.Base(path) == defaultFile {
		if extra, err = extraPlugins(rt.CapabilityArgs); err != nil {
			return nil, err
		}
	}
	return inline(list, extra)
}

// confFile is the file in force.
func (n *Network) confFile() (string, error) {
	files, err := confFiles(n.cfg.ConfDir)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	if len(files) == 0 {
		why := "the node has no pod CIDR yet"
		if n.cfg.Foreign {
			why = "a network add-on has to bring it"
		}
		return "", fmt.Errorf("%w: no CNI configuration in %s (%s)", ErrNotReady, n.cfg.ConfDir, why)
	}
	return first(files), nil
}

func confFiles(dir string) ([]string, error) {
	return libcni.ConfFiles(dir, []string{".conflist", ".conf", ".json"})
}

func first(files []string) string {
	best := files[0]
	for _, f := range files[1:] {
		if filepath.Base(f) < filepath.Base(best) {
			best = f
		}
	}
	return best
}

// readList reads a list, or a single plugin's configuration as a list of one.
func readList(path string) (*libcni.NetworkConfigList, error) {
	if filepath.Ext(path) == ".conflist" {
		return libcni.NetworkConfFromFile(path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	plugin, err := libcni.NetworkPluginConfFromBytes(b)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(plugin)
}

// extraPlugins are those that only some pods need.
func extraPlugins(capabilities map[string]any) (extra []map[string]any, err error) {
	if capabilities[capPortMappings] != nil {
		backend := natBackend()
		if backend == "" {
			return nil, ErrNoHostPorts
		}
		extra = append(extra, map[string]any{
			"type": "portmap", "snat": true, "backend": backend, "capabilities": map[string]bool{capPortMappings: true},
		})
	}
	if capabilities[capBandwidth] != nil {
		extra = append(extra, map[string]any{"type": "bandwidth", "capabilities": map[string]bool{capBandwidth: true}})
	}
	return extra, nil
}

// inline makes a list that says itself which plugins it has, those in files beside it and the extra ones as well: it is
// what libcni's cache keeps for the DEL.
func inline(list *libcni.NetworkConfigList, extra []map[string]any) (*libcni.NetworkConfigList, error) {
	var whole map[string]any
	if err := json.Unmarshal(list.Bytes, &whole); err != nil {
		return nil, err
	}
	var all []any
	for _, p := range list.Plugins {
		all = append(all, json.RawMessage(p.Bytes))
	}
	for _, p := range extra {
		all = append(all, p)
	}
	whole["plugins"], whole["loadOnlyInlinedPlugins"] = all, true
	b, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	return libcni.NetworkConfFromBytes(b)
}

// writeDefault writes our configuration, unless there is another file, and says whether it
// did. The caller holds mu.
func (n *Network) writeDefault(cidrs []netip.Prefix) (ours bool, err error) {
	files, err := confFiles(n.cfg.ConfDir)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if filepath.Base(f) != defaultFile {
			n.log.Info("using the CNI configuration that is there", "path", first(files))
			return false, nil
		}
	}
	b, err := json.MarshalIndent(n.defaultList(cidrs), "", "  ")
	if err != nil {
		return false, err
	}
	path := filepath.Join(n.cfg.ConfDir, defaultFile)
	tmp := path + ".tmp" // no extension that anyone reads
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return false, err
	}
	return true, os.Rename(tmp, path)
}

// defaultList is the configuration for ranges of one or two IP families, the pod's addresses in their order.
func (n *Network) defaultList(cidrs []netip.Prefix) map[string]any {
	var ranges [][]map[string]string
	var routes []map[string]string
	for _, cidr := range cidrs {
		everywhere := "0.0.0.0/0"
		if cidr.Addr().Is6() {
			everywhere = "::/0"
		}
		ranges = append(ranges, []map[string]string{{"subnet": cidr.String()}})
		routes = append(routes, map[string]string{"dst": everywhere})
	}
	bridge := map[string]any{
		"type": "bridge", "bridge": n.cfg.Bridge,
		"isGateway": true, "hairpinMode": true, "promiscMode": false,
		"ipam": map[string]any{
			"type":    "host-local",
			"dataDir": filepath.Join(n.cfg.StateDir, "leases"),
			"ranges":  ranges,
			"routes":  routes,
		},
	}
	if mtu := mtuOf(n.cfg.Address); mtu > 0 {
		bridge["mtu"] = mtu
	}
	if natBackend() == "iptables" {
		bridge["ipMasq"], bridge["ipMasqBackend"] = true, "iptables" // without nft: see masquerade.go
	}
	return map[string]any{"cniVersion": cniVersion, "name": defaultName, "plugins": []any{bridge}}
}

// natBackend is what the plugins may use for address translation, "" for nothing.
func natBackend() string {
	for _, b := range [][2]string{{"nft", "nftables"}, {"iptables", "iptables"}} {
		if _, err := exec.LookPath(b[0]); err == nil {
			return b[1]
		}
	}
	return ""
}
