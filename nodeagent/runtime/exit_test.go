package runtime_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestExitCodesAndReasons(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("exits"))

	st := h.waitExit(p.start(containerConfig("three", "exit", "3")))
	require.EqualValues(t, 3, st.ExitCode)
	require.Equal(t, "Error", st.Reason)

	missing := containerConfig("missing")
	missing.Command = []string{"/no/such/program"}
	id := p.create(missing)
	_, err := h.client.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
	require.ErrorContains(t, err, "/no/such/program")
	st = h.status(id)
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, st.State)
	require.EqualValues(t, 128, st.ExitCode)
	require.Equal(t, "StartError", st.Reason)
	require.Contains(t, st.Message, "/no/such/program")

	oom := containerConfig("oom", "alloc", "64")
	oom.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 20 << 20}
	st = h.waitExit(p.start(oom))
	require.Equal(t, "OOMKilled", st.Reason)
	require.EqualValues(t, 137, st.ExitCode)
}

// A container whose shim was killed ends too, and says that nobody knows how.
func TestKilledShim(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("shim"))
	id := p.start(containerConfig("main", "trap", "ignore"))
	container := h.pid(id)
	shim := parent(t, container)
	require.NoError(t, syscall.Kill(shim, syscall.SIGKILL))
	st := h.waitExit(id)
	require.EqualValues(t, 255, st.ExitCode)
	require.Equal(t, "ContainerStatusUnknown", st.Reason)
	require.True(t, ended(container))
}

// ended says whether a process is gone, or a zombie that nobody has reaped.
func ended(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// pid is the container's process 1 as the host counts.
func (h *host) pid(id string) int {
	resp, err := h.client.ContainerStatus(h.t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	require.NoError(h.t, err)
	pid, err := strconv.Atoi(resp.Info["pid"])
	require.NoError(h.t, err)
	return pid
}

func parent(t *testing.T, pid int) int {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	require.NoError(t, err)
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')'):]))
	ppid, err := strconv.Atoi(fields[2])
	require.NoError(t, err)
	return ppid
}

// waitLog waits until a container has written text.
func (h *host) waitLog(id, text string) {
	require.Eventually(h.t, func() bool { return strings.Contains(h.log(id), text) }, time.Minute, 5*time.Millisecond, "no %q in the log", text)
}

// stopTime stops a container with a grace period and returns how long it took.
func (h *host) stopTime(id string, grace int64) time.Duration {
	begin := time.Now()
	_, err := h.client.StopContainer(h.t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: grace})
	require.NoError(h.t, err)
	return time.Since(begin)
}

func TestCleanExitEndsTheWait_ND05(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("grace"))
	id := p.start(containerConfig("main", "trap", "100ms"))
	h.waitLog(id, "trap: set")
	require.Less(t, h.stopTime(id, 300), 30*time.Second, "far below the grace period")
	require.EqualValues(t, 0, h.status(id).ExitCode)
	require.Less(t, h.stopTime(id, 300), 30*time.Second, "stopping again is nothing")
}

// A second stop with a shorter grace period takes effect while the first one waits.
func TestGracePeriodCanBeShortened_ND04(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("short"))
	id := p.start(containerConfig("main", "trap", "ignore"))
	h.waitLog(id, "trap: set")
	first := make(chan time.Duration, 1)
	go func() { first <- h.stopTime(id, 600) }()
	h.waitLog(id, "trap: caught SIGTERM")
	h.stopTime(id, 1)
	require.Less(t, <-first, 300*time.Second)
	st := h.status(id)
	require.EqualValues(t, 137, st.ExitCode)
	require.Equal(t, "Error", st.Reason, "killed by us is not out of memory")
}

func TestUnknownIDs(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	const id = "00000000000000000000000000000000"
	_, err := h.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	require.NoError(t, err)
	_, err = h.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	require.NoError(t, err)
	_, err = h.client.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id})
	require.NoError(t, err)
	_, err = h.client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	require.NoError(t, err)
	_, err = h.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	require.ErrorContains(t, err, "NotFound")
	_, err = h.client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: id, Config: containerConfig("x")})
	require.ErrorContains(t, err, "NotFound")
	p := h.runPod(h.sandboxConfig("noimage"))
	config := containerConfig("x")
	config.Image.Image = "no.such/image:1"
	_, err = h.client.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: config})
	require.ErrorContains(t, err, "NotFound")
}
