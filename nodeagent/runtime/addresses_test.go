package runtime_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandboxIPs are the addresses of all sandboxes, sorted.
func (h *host) sandboxIPs() []string {
	list, err := h.client.ListPodSandbox(h.t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(h.t, err)
	var out []string
	for _, p := range list.Items {
		if p.State != runtimeapi.PodSandboxState_SANDBOX_READY {
			continue
		}
		st, err := h.client.PodSandboxStatus(h.t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.Id})
		require.NoError(h.t, err)
		out = append(out, st.Status.Network.Ip)
	}
	slices.Sort(out)
	return out
}

// leases are the addresses that host-local has given out, sorted.
func (h *host) leases() []string {
	entries, err := os.ReadDir(filepath.Join(h.cfg.StateDir, "cni/leases/kontiki"))
	require.NoError(h.t, err)
	var out []string
	for _, e := range entries {
		if _, err := netip.ParseAddr(e.Name()); err == nil {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out
}

// A reboot takes namespaces, mounts and processes and leaves the files.
func TestAfterReboot_NW01(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("old"))
	id := p.start(containerConfig("main", "trap", "ignore"))
	require.NoError(t, h.r.Close())
	dir := filepath.Join(h.cfg.StateDir, "containers", id)
	require.NoError(t, unix.Kill(parent(t, h.pid(id)), unix.SIGKILL))
	require.NoError(t, exec.Command(h.cfg.RuncPath, "--root", filepath.Join(h.cfg.StateDir, "runc"), "delete", "--force", id).Run())
	require.NoError(t, unix.Unmount(filepath.Join(dir, "rootfs"), unix.MNT_DETACH))
	for _, ns := range []string{"net", "ipc", "uts"} {
		require.NoError(t, unix.Unmount(filepath.Join(h.cfg.StateDir, "sandboxes", p.id, "ns", ns), unix.MNT_DETACH))
	}
	h.start()
	list, err := h.client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(t, err)
	require.Equal(t, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, list.Items[0].State)
	require.EqualValues(t, 255, h.status(id).ExitCode)
	require.Empty(t, h.leases(), "the address is free again")
}

// A range with room for ten pods is enough for ten pods however often they come and go, and
// a failing plugin leaves nothing.
func TestAddressesDoNotLeak_NW01(t *testing.T) {
	h := newHost(t)
	require.NoError(t, h.r.Close())
	h.cfg.PodCIDR = "10.199.8.0/28"
	h.start()
	for range 2 {
		var pods []pod
		for i := range 10 {
			pods = append(pods, h.runPod(h.sandboxConfig("n"+itoa(i))))
		}
		require.Len(t, h.leases(), 10)
		require.Equal(t, h.sandboxIPs(), h.leases())
		h.restart()
		for _, p := range pods {
			_, err := h.client.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.id})
			require.NoError(t, err)
		}
		require.Empty(t, h.leases())
	}
	conf := filepath.Join(h.cfg.StateDir, "cni/net.d/10-kontiki.conflist")
	good, err := os.ReadFile(conf)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(conf, []byte(strings.Replace(string(good), h.cfg.Bridge, "a-name-much-too-long-for-it", 1)), 0o644))
	_, err = h.client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: h.sandboxConfig("bad")})
	require.ErrorContains(t, err, "CNI ADD")
	require.Empty(t, h.leases())
	require.NoError(t, os.WriteFile(conf, good, 0o644))
}

// together does f for each of n at once.
func together(n int, f func(i int) error) error {
	failures := make(chan error, n)
	for i := range n {
		go func() { failures <- f(i) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-failures)
	}
	return all
}

// runPods starts ten sandboxes at once, and returns their ids.
func (h *host) runPods(ctx context.Context, prefix string) []string {
	ids := make([]string, 10)
	require.NoError(h.t, together(len(ids), func(i int) error {
		reply, err := h.client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: h.sandboxConfig(prefix + itoa(i))})
		ids[i] = reply.GetPodSandboxId()
		return err
	}))
	return ids
}

// TestRebootsDoNotLeak_NW01: ten pods find room in a range for thirteen after every reset, with the old sandboxes still there
// when the new ones come.
func TestRebootsDoNotLeak_NW01(t *testing.T) {
	h := newHost(t)
	require.NoError(t, h.r.Close())
	h.cfg.PodCIDR = "10.199.8.0/28"
	h.start()
	old := h.runPods(t.Context(), "first")
	for range 4 {
		require.NoError(t, h.r.Close())
		for _, id := range old { // the bridge keeps its address, as one that a machine's own configuration makes
			for _, ns := range []string{"net", "ipc", "uts"} {
				require.NoError(t, unix.Unmount(filepath.Join(h.cfg.StateDir, "sandboxes", id, "ns", ns), unix.MNT_DETACH))
			}
		}
		h.start()
		require.Empty(t, h.leases(), "what the lost namespaces had is free")
		pods := h.runPods(t.Context(), "next")
		require.Len(t, h.leases(), 10)
		require.Equal(t, h.sandboxIPs(), h.leases())
		require.NoError(t, together(len(old), func(i int) error {
			_, err := h.client.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: old[i]})
			return err
		}))
		require.Equal(t, h.sandboxIPs(), h.leases(), "the old ones take nothing of the new ones along")
		old = pods
	}
}

// TestCacheIsLost_NW02: without what the CNI library remembers of its attachments, new pods still get addresses of their own.
func TestCacheIsLost_NW02(t *testing.T) {
	h := newHost(t)
	h.runPods(t.Context(), "first")
	first := h.sandboxIPs()
	require.Len(t, first, 10)
	require.NoError(t, h.r.Close())
	cached, err := filepath.Glob(filepath.Join(h.cfg.StateDir, "cni", "cache", "results", "*"))
	require.NoError(t, err)
	require.Len(t, cached, 10)
	require.NoError(t, os.RemoveAll(filepath.Join(h.cfg.StateDir, "cni", "cache")))
	h.start()
	require.Equal(t, first, h.sandboxIPs(), "the first ten keep theirs")
	h.runPods(t.Context(), "second")
	all := h.sandboxIPs()
	require.Len(t, all, 20)
	require.Len(t, slices.Compact(slices.Clone(all)), 20, "no address twice: %v", all)
	require.Equal(t, all, h.leases())
}
