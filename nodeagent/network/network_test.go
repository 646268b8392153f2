package network

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/stretchr/testify/require"
)

var hostPorts = &libcni.RuntimeConf{CapabilityArgs: map[string]any{capPortMappings: []PortMapping{{HostPort: 80}}}}

var realPath = os.Getenv("PATH")

func newNetwork(t *testing.T) *Network {
	dir := t.TempDir()
	if os.Getenv("PATH") == realPath {
		t.Setenv("PATH", dir) // without nft: these tests run in the machine's own network
	}
	n, err := New(Config{ConfDir: filepath.Join(dir, "net.d"), BinDirs: []string{filepath.Join(dir, "bin")}, StateDir: filepath.Join(dir, "state"), Bridge: "br9"})
	require.NoError(t, err)
	return n
}

func needRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: SetPodCIDR turns IP forwarding on")
	}
}

func TestDefaultConfiguration(t *testing.T) {
	needRoot(t)
	n := newNetwork(t)
	require.ErrorIs(t, n.Ready(t.Context()), ErrNotReady)
	require.Error(t, n.SetPodCIDR(t.Context(), "10.244.1.0"))
	require.NoError(t, n.SetPodCIDR(t.Context(), "10.244.1.7/24"))
	require.ErrorContains(t, n.Ready(t.Context()), `failed to find plugin "bridge"`)
	b, err := os.ReadFile(filepath.Join(n.cfg.ConfDir, "10-kontiki.conflist"))
	require.NoError(t, err)
	var conf struct {
		CNIVersion, Name string
		Plugins          []struct {
			Type, Bridge                        string
			IsGateway, HairpinMode, PromiscMode bool
			IPAM                                struct {
				Type, DataDir string
				Ranges        [][]struct{ Subnet string }
			}
		}
	}
	require.NoError(t, json.Unmarshal(b, &conf))
	require.Equal(t, "1.1.0", conf.CNIVersion)
	require.Len(t, conf.Plugins, 1, "portmap is only for those who need it")
	p := conf.Plugins[0]
	require.Equal(t, "br9", p.Bridge)
	require.True(t, p.IsGateway && p.HairpinMode && !p.PromiscMode)
	require.Equal(t, "10.244.1.0/24", p.IPAM.Ranges[0][0].Subnet)
	require.Equal(t, filepath.Join(n.cfg.StateDir, "leases"), p.IPAM.DataDir)

	require.NoError(t, n.SetPodCIDR(t.Context(), "10.244.2.0/24"))
	list, err := n.list(&libcni.RuntimeConf{})
	require.NoError(t, err)
	require.Contains(t, string(list.Plugins[0].Bytes), "10.244.2.0/24", "a new range replaces our own file")
}

func TestForeignConfigurationIsLeftAlone(t *testing.T) {
	needRoot(t)
	n := newNetwork(t)
	foreign := []byte(`{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"ptp"}]}`)
	path := filepath.Join(n.cfg.ConfDir, "05-other.conflist")
	require.NoError(t, os.WriteFile(path, foreign, 0o644))
	require.NoError(t, n.SetPodCIDR(t.Context(), "10.244.1.0/24"))
	require.NoFileExists(t, filepath.Join(n.cfg.ConfDir, defaultFile))
	list, err := n.list(hostPorts)
	require.NoError(t, err)
	require.Equal(t, "other", list.Name)
	require.Len(t, list.Plugins, 1, "nothing is appended to somebody else's list")

	require.NoError(t, os.WriteFile(path, []byte(`{"name":`), 0o644))
	require.ErrorIs(t, n.Ready(t.Context()), ErrNotReady, "a broken file is named, not skipped")
}

func TestPortmapIsAppendedForHostPorts(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nft"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", dir)
	n := newNetwork(t)
	require.NoError(t, n.SetPodCIDR(t.Context(), "10.244.1.0/24"))
	list, err := n.list(hostPorts)
	require.NoError(t, err)
	require.Len(t, list.Plugins, 2)
	require.Equal(t, "portmap", list.Plugins[1].Network.Type)
	require.NotContains(t, string(list.Plugins[0].Bytes), "ipMasq", "one rule for all pods instead")

	t.Setenv("PATH", t.TempDir())
	_, err = n.list(hostPorts)
	require.ErrorIs(t, err, ErrNoHostPorts)
}

func TestKillOrphans(t *testing.T) {
	dir := t.TempDir()
	plugin := exec.Command("sleep", "1000")
	plugin.Env = []string{"PATH=/bin", "CNI_NETNS=" + dir + "/x/ns/net"}
	require.NoError(t, plugin.Start())
	other := exec.Command("sleep", "1000")
	other.Env = []string{"CNI_NETNS=" + dir + "-of-another/x"}
	require.NoError(t, other.Start())
	waited := make(chan error, 1)
	go func() { waited <- plugin.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, KillOrphans(ctx, dir))
	require.Error(t, <-waited)
	require.NoError(t, other.Process.Kill(), "it still ran")
	require.Error(t, other.Wait())
}
