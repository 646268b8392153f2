package runtime_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestPodFromRunToRemove(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	p := h.runPod(h.sandboxConfig("one"))

	sb, err := h.client.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.id})
	require.NoError(t, err)
	require.Equal(t, runtimeapi.PodSandboxState_SANDBOX_READY, sb.Status.State)
	require.Regexp(t, `^10\.199\.7\.\d+$`, sb.Status.Network.Ip)

	id := p.create(containerConfig("main", "lines", "3"))
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_CREATED, h.status(id).State)
	_, err = h.client.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id})
	require.NoError(t, err)
	st := h.waitExit(id)
	require.EqualValues(t, 0, st.ExitCode)
	require.Equal(t, "Completed", st.Reason)
	require.Greater(t, st.StartedAt, st.CreatedAt)
	require.GreaterOrEqual(t, st.FinishedAt, st.StartedAt)
	require.NotEmpty(t, h.log(id))

	log := st.LogPath
	_, err = h.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.id})
	require.NoError(t, err)
	_, err = h.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.id})
	require.NoError(t, err)
	require.FileExists(t, log, "logs belong to the agent")
	entries, err := os.ReadDir(h.cfg.StateDir + "/containers")
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestContainerOfASystemdService starts a container below a service of systemd, whose children inherit the socket that it says
// it is ready on.
func TestContainerOfASystemdService(t *testing.T) {
	h := newHost(t)
	socket := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, systemd.Close()) })
	t.Setenv("NOTIFY_SOCKET", socket)
	p := h.runPod(h.sandboxConfig("service"))
	require.Zero(t, h.waitExit(p.start(containerConfig("main", "lines", "1"))).ExitCode)
}
