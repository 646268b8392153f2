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

// list reads the configuration in force: the first file by name, as kubelet's runtimes do.
func (n *Network) list(hostPorts bool) (*libcni.NetworkConfigList, error) {
	files, err := libcni.ConfFiles(n.cfg.ConfDir, []string{".conflist", ".conf", ".json"})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: no CNI configuration in %s (the node has no pod CIDR yet)", ErrNotReady, n.cfg.ConfDir)
	}
	path := first(files)
	list, err := readList(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotReady, path, err)
	}
	if !hostPorts || filepath.Base(path) != defaultFile {
		return list, nil
	}
	return withPortmap(list)
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

// withPortmap appends the portmap plugin.
func withPortmap(list *libcni.NetworkConfigList) (*libcni.NetworkConfigList, error) {
	backend := natBackend()
	if backend == "" {
		return nil, ErrNoHostPorts
	}
	b, err := json.Marshal(map[string]any{
		"type": "portmap", "snat": true, "backend": backend,
		"capabilities": map[string]bool{"portMappings": true},
	})
	if err != nil {
		return nil, err
	}
	plugin, err := libcni.NetworkPluginConfFromBytes(b)
	if err != nil {
		return nil, err
	}
	longer := *list
	longer.Plugins = append(list.Plugins[:len(list.Plugins):len(list.Plugins)], plugin)
	return &longer, nil
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

// writeDefault writes our configuration, unless there is another file, and says whether it
// did. The caller holds mu.
func (n *Network) writeDefault(cidr netip.Prefix) (ours bool, err error) {
	files, err := libcni.ConfFiles(n.cfg.ConfDir, []string{".conflist", ".conf", ".json"})
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if filepath.Base(f) != defaultFile {
			n.log.Info("using the CNI configuration that is there", "path", first(files))
			return false, nil
		}
	}
	b, err := json.MarshalIndent(n.defaultList(cidr), "", "  ")
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

func (n *Network) defaultList(cidr netip.Prefix) map[string]any {
	route := "0.0.0.0/0"
	if cidr.Addr().Is6() {
		route = "::/0"
	}
	bridge := map[string]any{
		"type": "bridge", "bridge": n.cfg.Bridge,
		"isGateway": true, "hairpinMode": true, "promiscMode": false,
		"ipam": map[string]any{
			"type":    "host-local",
			"dataDir": filepath.Join(n.cfg.StateDir, "leases"),
			"ranges":  [][]map[string]string{{{"subnet": cidr.String()}}},
			"routes":  []map[string]string{{"dst": route}},
		},
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
