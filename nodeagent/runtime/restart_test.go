package runtime_test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/runtime"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Containers outlive the runtime: same processes, same addresses, no log line and no exit
// code lost.
func TestRestart(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("restart"))
	running := p.start(containerConfig("running", "lines", "1000000", "50", "200"))
	created := p.create(containerConfig("created", "exit", "4"))
	done := p.start(containerConfig("done", "exit", "5"))
	h.waitExit(done)
	meanwhile := p.start(containerConfig("meanwhile", "partial", "x", "1s"))
	before := h.pid(running)
	sb, err := h.client.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	require.NoError(t, err)

	require.NoError(t, h.r.Close())
	require.Eventually(t, func() bool { // it ends while no runtime is there
		_, err := os.Stat(filepath.Join(h.cfg.StateDir, "containers", meanwhile, "exit.json"))
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	h.start()

	require.Equal(t, before, h.pid(running))
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, h.status(running).State)
	require.EqualValues(t, 5, h.status(done).ExitCode)
	require.EqualValues(t, 0, h.waitExit(meanwhile).ExitCode)
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_CREATED, h.status(created).State)
	_, err = h.client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: created})
	require.NoError(t, err)
	require.EqualValues(t, 4, h.waitExit(created).ExitCode)
	after, err := h.client.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	require.NoError(t, err)
	require.Equal(t, sb.Status.Network.Ip, after.Status.Network.Ip)
	require.Equal(t, sb.Status.CreatedAt, after.Status.CreatedAt)

	h.stopTime(running, 5) // and it still obeys
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, h.status(running).State)
}

// Two runtimes on one directory would take each other's containers for debris.
func TestOneRuntimePerDirectory(t *testing.T) {
	h := newHost(t)
	_, err := runtime.New(h.cfg)
	require.ErrorIs(t, err, runtime.ErrInUse)
	h.restart()
}

// The runtime dies while a container starts: the container does not run unknown to everybody.
func TestKilledDuringStart(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("start"))
	for _, moment := range []string{"container.json", "shim.json", "shim.sock", "pid", "started.json"} {
		id := p.create(containerConfig("at-"+moment, "trap", "ignore"))
		child := h.startChild()
		client := h.client
		go func() {
			_, _ = client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
		}()
		h.waitFile("containers/" + id + "/" + moment)
		child.kill()
		h.start()
		st := h.status(id)
		switch st.State {
		case runtimeapi.ContainerState_CONTAINER_CREATED: // the call did not get that far
		case runtimeapi.ContainerState_CONTAINER_RUNNING:
			// A shim that was starting when its parent died may end yet; then the runtime has to notice.
			require.Eventually(t, func() bool {
				return h.status(id).State == runtimeapi.ContainerState_CONTAINER_EXITED || !ended(h.pid(id))
			}, 10*time.Second, 10*time.Millisecond, moment)
		case runtimeapi.ContainerState_CONTAINER_EXITED:
			require.NotZero(t, st.ExitCode, moment)
		}
	}
}

// waitFile waits until a file matches the pattern below the state directory.
func (h *host) waitFile(pattern string) {
	require.Eventually(h.t, func() bool {
		found, err := filepath.Glob(filepath.Join(h.cfg.StateDir, pattern))
		return err == nil && len(found) > 0
	}, 20*time.Second, time.Millisecond, pattern)
}

// TestServeHelper is the process that TestKillNine kills: a runtime on a unix socket.
func TestServeHelper(t *testing.T) {
	if os.Getenv("KONTIKI_HELPER_STATE") == "" {
		t.Skip("only as a child of TestKillNine")
	}
	serveHelper(t)
}

// kill -9 of the process that holds the runtime, while it makes another pod.
func TestKillNine(t *testing.T) {
	h := newHost(t)
	ids := []string{h.runPod(h.sandboxConfig("first")).start(containerConfig("main", "trap", "ignore"))}
	pid := h.pid(ids[0])
	for i, moment := range []string{"sandboxes/*", "sandboxes/*/ns/net", "cni/leases/kontiki/10.*", "sandboxes/*/sandbox.json"} {
		child := h.startChild()
		ids = append(ids, h.runPod(h.sandboxConfig("k"+itoa(i))).start(containerConfig("main", "trap", "ignore")))
		before, err := filepath.Glob(filepath.Join(h.cfg.StateDir, moment))
		require.NoError(t, err)
		client, config := h.client, h.sandboxConfig("half"+itoa(i))
		go func() {
			_, _ = client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
		}()
		require.Eventually(t, func() bool {
			now, err := filepath.Glob(filepath.Join(h.cfg.StateDir, moment))
			return err == nil && len(now) > len(before)
		}, 20*time.Second, time.Millisecond, moment)
		child.kill()
		h.start()
		require.Equal(t, pid, h.pid(ids[0]))
		for _, id := range ids {
			require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, h.status(id).State)
		}
		require.Equal(t, h.sandboxIPs(), h.leases(), "allocated addresses are those of sandboxes")
	}
}

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

// Everything that a crash can leave is gone after the next start, and only that.
func TestDebris_ND07(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("kept"))
	kept := p.start(containerConfig("main", "trap", "ignore"))
	lost := h.runPod(h.sandboxConfig("lost"))
	config := containerConfig("main", "trap", "ignore")
	config.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_POD // has a pause process too
	stray := lost.start(config)
	strayPID := h.pid(stray)
	require.NoError(t, h.r.Close())

	// A power cut on a careless disk, or a person: records vanish.
	require.NoError(t, os.Remove(filepath.Join(h.cfg.StateDir, "sandboxes", lost.id, "sandbox.json")))
	require.NoError(t, os.WriteFile(filepath.Join(h.cfg.StateDir, "containers", stray, "container.json"), nil, 0o600))
	// A cgroup and a mount of nobody, and a cgroup of somebody else.
	root := "/sys/fs/cgroup/memory" + h.cfg.CgroupRoot
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil {
		root = "/sys/fs/cgroup" + h.cfg.CgroupRoot
	}
	nobody := filepath.Join(root, "pod-0123456789abcdef0123456789abcdef")
	foreign := filepath.Join(root, "somebody")
	require.NoError(t, os.MkdirAll(filepath.Join(nobody, "0123456789abcdef0123456789abcdef"), 0o755))
	require.NoError(t, os.Mkdir(foreign, 0o755))
	mount := filepath.Join(h.cfg.StateDir, "containers", "0123456789abcdef0123456789abcdef", "rootfs")
	require.NoError(t, os.MkdirAll(mount, 0o755))
	require.NoError(t, unix.Mount("none", mount, "tmpfs", 0, ""))

	h.start()
	require.True(t, ended(strayPID))
	require.NoDirExists(t, nobody)
	require.DirExists(t, foreign)
	require.NoError(t, os.Remove(foreign))
	require.NoDirExists(t, filepath.Dir(mount))
	require.NoDirExists(t, filepath.Join(h.cfg.StateDir, "sandboxes", lost.id))
	require.Equal(t, h.sandboxIPs(), h.leases())
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, h.status(kept).State)
}

// forget restarts the runtime without the record of a sandbox, as after a crash in the middle
// of RunPodSandbox.
func (h *host) forget(id string) {
	require.NoError(h.t, h.r.Close())
	require.NoError(h.t, os.Remove(filepath.Join(h.cfg.StateDir, "sandboxes", id, "sandbox.json")))
	h.start()
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
