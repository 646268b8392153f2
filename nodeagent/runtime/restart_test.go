package runtime_test

import (
	"os"
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

// TestShimIsNotInTheAgentsCgroup looks where systemd looks for the processes of the agent's service: at the v2 hierarchy.
func TestShimIsNotInTheAgentsCgroup(t *testing.T) {
	h := newHost(t)
	config := h.sandboxConfig("apart")
	config.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_POD
	p, shared := h.runPod(config), containerConfig("main", "sleep", "1h")
	shared.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_POD
	p.start(shared)
	mounts := []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
	mounts = slices.DeleteFunc(mounts, func(m string) bool { _, err := os.Stat(m + "/cgroup.procs"); return err != nil })
	if len(mounts) == 0 {
		t.Skip("needs cgroup v2, with controllers or without")
	}
	inside, err := os.ReadFile(filepath.Join(mounts[0], h.cfg.CgroupRoot, "shim-"+p.id, "cgroup.procs"))
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(inside)), 2, "a shim and a pause process")
}
