package runtime_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What a container sees of itself and its pod.
func TestContainerSurroundings(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("inside"))
	volume := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(volume, "file"), []byte("from the host"), 0o644))
	config := containerConfig("main", "serve")
	config.Envs = []*runtimeapi.KeyValue{{Key: "GREETING", Value: []byte("hi")}, {Key: "PATH", Value: []byte("/bin")}}
	config.Mounts = []*runtimeapi.Mount{
		{ContainerPath: "/data", HostPath: volume},
		{ContainerPath: "/ro", HostPath: volume, Readonly: true},
		{ContainerPath: "/data/made", HostPath: filepath.Join(t.TempDir(), "new")},
	}
	sc := config.Linux.SecurityContext
	sc.RunAsUser, sc.RunAsGroup = &runtimeapi.Int64Value{Value: 65534}, &runtimeapi.Int64Value{Value: 7}
	sc.SupplementalGroups = []int64{1234}
	sc.ReadonlyRootfs = true
	id := p.start(config)

	env := string(h.exec(id, "env").Stdout)
	require.Contains(t, env, "GREETING=hi\n")
	require.Contains(t, env, "HOSTNAME=inside\n")
	require.Contains(t, env, "PATH=/bin\n")
	who := string(h.exec(id, "id").Stdout)
	for _, want := range []string{"65534", "1234", "inside"} {
		require.Contains(t, who, want)
	}
	require.Equal(t, "from the host", string(h.exec(id, "cat", "/data/file").Stdout))
	require.NotZero(t, h.exec(id, "write", "/ro/file", "x").ExitCode)
	require.NotZero(t, h.exec(id, "write", "/file", "x").ExitCode, "the root is read-only")
	require.Equal(t, "search default.svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n", string(h.exec(id, "cat", "/etc/resolv.conf").Stdout))
	require.Equal(t, "inside\n", string(h.exec(id, "cat", "/etc/hostname").Stdout))
	status := string(h.exec(id, "cat", "/proc/1/status").Stdout)
	require.Contains(t, status, "CapEff:\t0000000000000000", "an ordinary user has no capabilities")
	user := h.status(id).User.Linux
	require.EqualValues(t, 65534, user.Uid)
	require.EqualValues(t, []int64{7, 1234}, user.SupplementalGroups)
}

func TestLimitsAndTheirUpdate(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("limits"))
	config := containerConfig("main", "serve")
	config.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 64 << 20, CpuPeriod: 100000, CpuQuota: 50000, OomScoreAdj: -997}
	id := p.start(config)
	limit := func() string {
		for _, glob := range []string{"/sys/fs/cgroup/memory" + h.cfg.CgroupRoot + "/*/" + id + "/memory.limit_in_bytes", "/sys/fs/cgroup" + h.cfg.CgroupRoot + "/*/" + id + "/memory.max"} {
			if files, _ := filepath.Glob(glob); len(files) == 1 {
				b, err := os.ReadFile(files[0])
				require.NoError(t, err)
				return strings.TrimSpace(string(b))
			}
		}
		return "no cgroup"
	}
	require.Equal(t, "67108864", limit())
	_, err := h.client.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: id, Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 96 << 20},
	})
	require.NoError(t, err)
	require.Equal(t, "100663296", limit())
	res := h.status(id).Resources.Linux
	require.EqualValues(t, 96<<20, res.MemoryLimitInBytes)
	require.EqualValues(t, 50000, res.CpuQuota, "what the update does not name stays")

	stats, err := h.client.ContainerStats(t.Context(), &runtimeapi.ContainerStatsRequest{ContainerId: id})
	require.NoError(t, err)
	require.NotZero(t, stats.Stats.Cpu.UsageCoreNanoSeconds.Value)
	require.NotZero(t, stats.Stats.Memory.WorkingSetBytes.Value)
	require.Less(t, stats.Stats.Memory.UsageBytes.Value, uint64(96<<20))
	podStats, err := h.client.PodSandboxStats(t.Context(), &runtimeapi.PodSandboxStatsRequest{PodSandboxId: p.id})
	require.NoError(t, err)
	require.Equal(t, "eth0", podStats.Stats.Linux.Network.DefaultInterface.Name)
	require.Len(t, podStats.Stats.Linux.Containers, 1)
}

func TestNamespaceModes(t *testing.T) {
	h := newHost(t)
	shared := h.sandboxConfig("shared")
	shared.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_POD
	p := h.runPod(shared)
	var ids []string
	for _, name := range []string{"a", "b"} {
		config := containerConfig(name, "trap", "ignore")
		config.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_POD
		ids = append(ids, p.start(config))
	}
	procs := string(h.exec(ids[0], "ls", "/proc").Stdout)
	require.Contains(t, procs, " 1\n", "the pause process")
	pids := regexp.MustCompile(`(?m) \d+$`).FindAllString(procs, -1)
	require.GreaterOrEqual(t, len(pids), 4, "pause, both containers, ls")
	h.stopTime(ids[0], 0)
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, h.status(ids[1]).State)

	onHost := h.sandboxConfig("onhost")
	onHost.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{
		Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_NODE, Ipc: runtimeapi.NamespaceMode_NODE,
	}
	p = h.runPod(onHost)
	config := containerConfig("main", "trap", "ignore")
	config.Linux.SecurityContext.NamespaceOptions = onHost.Linux.SecurityContext.NamespaceOptions
	id := p.start(config)
	for _, ns := range []string{"net", "pid", "ipc", "uts"} {
		own, err := os.Readlink("/proc/self/ns/" + ns)
		require.NoError(t, err)
		theirs, err := os.Readlink(filepath.Join("/proc", itoa(h.pid(id)), "ns", ns))
		require.NoError(t, err)
		require.Equal(t, own, theirs, ns)
	}
	sb, err := h.client.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	require.NoError(t, err)
	require.Empty(t, sb.Status.Network.Ip, "the node's address is the agent's to tell")
}

func TestPrivilegedAndCapabilities(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("caps"))
	effective := func(change func(*runtimeapi.LinuxContainerSecurityContext)) string {
		config := containerConfig("c"+itoa(os.Getpid()), "cat", "/proc/self/status")
		change(config.Linux.SecurityContext)
		id := p.start(config)
		h.waitExit(id)
		_, rest, _ := strings.Cut(h.log(id), "CapEff:\t")
		_, err := h.client.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: id})
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(p.config.LogDirectory, config.LogPath)))
		return rest[:16]
	}
	require.Equal(t, "00000000a80425fb", effective(func(*runtimeapi.LinuxContainerSecurityContext) {}))
	require.Equal(t, "0000000000000400", effective(func(sc *runtimeapi.LinuxContainerSecurityContext) {
		sc.Capabilities = &runtimeapi.Capability{DropCapabilities: []string{"ALL"}, AddCapabilities: []string{"net_bind_service"}}
	}))
	own, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(own), "CapEff:\t")
	require.Equal(t, rest[:16], effective(func(sc *runtimeapi.LinuxContainerSecurityContext) { sc.Privileged = true }))
}
