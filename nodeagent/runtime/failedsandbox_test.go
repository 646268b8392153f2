package runtime_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// limited is a sandbox with a cgroup of its own.
func (h *host) limited(name string) *runtimeapi.PodSandboxConfig {
	config := h.sandboxConfig(name)
	config.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 64 << 20}
	return config
}

// A sandbox whose network fails leaves nothing: newHost checks mounts, addresses and cgroups.
func TestFailedSandboxLeavesNothing_NW01(t *testing.T) {
	h := newHost(t)
	good := h.breakPlugin("#!/bin/sh\necho '{\"code\": 999, \"msg\": \"no\"}'\n[ $CNI_COMMAND = DEL ]\n")
	_, err := h.client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: h.limited("bad")})
	require.ErrorContains(t, err, "CNI ADD")
	good()
	list, err := h.client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
}

// A sandbox that can be neither set up nor undone is shown as stopped, until it is removed.
func TestFailedSandboxCanBeRemovedLater(t *testing.T) {
	h := newHost(t)
	good := h.breakPlugin("#!/bin/sh\necho '{\"code\": 999, \"msg\": \"no\"}'\nexit 1\n")
	_, err := h.client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: h.limited("bad")})
	require.ErrorContains(t, err, "CNI ADD")
	list, err := h.client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, list.Items[0].State)
	remove := &runtimeapi.RemovePodSandboxRequest{PodSandboxId: list.Items[0].Id}
	_, err = h.client.RemovePodSandbox(t.Context(), remove)
	require.ErrorContains(t, err, "CNI DEL")
	good()
	_, err = h.client.RemovePodSandbox(t.Context(), remove)
	require.NoError(t, err)
	h.requireNothingLeft()
}

// breakPlugin puts a script in the place of the bridge plugin; the returned func puts it back.
func (h *host) breakPlugin(script string) (mend func()) {
	require.NoError(h.t, h.r.Close())
	real := h.cfg.CNIBinDirs[0]
	h.cfg.CNIBinDirs = []string{h.t.TempDir()}
	bridge := filepath.Join(h.cfg.CNIBinDirs[0], "bridge")
	require.NoError(h.t, os.WriteFile(bridge, []byte(script), 0o755))
	require.NoError(h.t, os.Symlink(filepath.Join(real, "host-local"), filepath.Join(h.cfg.CNIBinDirs[0], "host-local")))
	h.start()
	return func() {
		require.NoError(h.t, os.Remove(bridge))
		require.NoError(h.t, os.Symlink(filepath.Join(real, "bridge"), bridge))
	}
}
