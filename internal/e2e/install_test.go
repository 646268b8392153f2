package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/netnstest"
)

// TestUninstallLeavesNothing installs a server on a machine of its own, runs pods and a Service on it, and uninstalls it: no
// process, mount, cgroup, interface, nft table or file is left.
func TestUninstallLeavesNothing(t *testing.T) {
	needCluster(t)
	space := netnstest.New(t, "machine", "nft")
	space.Run("ip link add eth0 type veth peer name out", "ip addr add 10.66.0.1/24 dev eth0", "ip link set eth0 up", "ip link set out up", "ip route add default via 10.66.0.2")
	root, group := filepath.Join(t.TempDir(), "root"), cgroupRoot()+"-install"
	command := func(program string, args ...string) string {
		t.Helper()
		var out []byte
		var err error
		space.In(func() { out, err = exec.Command(program, args...).CombinedOutput() })
		require.NoError(t, err, "%s %v: %s", program, args, out)
		return string(out)
	}
	command(filepath.Join(binDir, "kontiki"), "install", "server", "--root", root, "--cgroup-root", group, "--node-ip", "10.66.0.1", "--node-name", "n1")
	kontiki, config := filepath.Join(root, "usr/local/bin/kontiki"), filepath.Join(root, "etc/kontiki/server.yaml")

	server := exec.Command(kontiki, "server", "--config", config)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	server.Stderr = log
	space.In(func() { err = server.Start() })
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	uninstalled := false
	t.Cleanup(func() {
		if !uninstalled {
			space.In(func() { _ = exec.Command(filepath.Join(binDir, "kontiki"), "uninstall", "--root", root).Run() })
			_ = server.Process.Kill()
		}
	})
	kubectl := func(args ...string) ([]byte, error) {
		var out []byte
		var err error
		args = append([]string{"kubectl", "--kubeconfig", filepath.Join(root, "var/lib/kontiki/admin.kubeconfig")}, args...)
		space.In(func() { out, err = exec.Command(kontiki, args...).CombinedOutput() })
		return out, err
	}
	require.Eventually(t, func() bool { _, err := kubectl("get", "--raw", "/readyz"); return err == nil }, time.Minute, 100*time.Millisecond)
	out, err := kubectl("apply", "-f", filepath.Join("..", "..", "examples", "hello.yaml"))
	require.NoError(t, err, string(out))
	out, err = kubectl("rollout", "status", "deployment/hello", "--timeout=120s")
	require.NoError(t, err, string(out))
	groups := func() []string { found, _ := filepath.Glob("/sys/fs/cgroup/*/" + group); return found }
	mounts := func() string { data, _ := os.ReadFile("/proc/self/mountinfo"); return string(data) }
	require.Contains(t, command("ip", "-o", "link"), "kontiki0")
	require.Contains(t, mounts(), root)
	require.NotEmpty(t, groups())

	command(kontiki, "uninstall", "--root", root)
	uninstalled = true
	require.NoError(t, <-ended)
	require.NotContains(t, command("ip", "-o", "link"), "kontiki")
	require.NotContains(t, command("nft", "list", "tables"), "kontiki-")
	require.NotContains(t, mounts(), root)
	require.Empty(t, groups())
	require.NotContains(t, command("ps", "-eo", "args"), root+"/")
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			require.Fail(t, "left: "+strings.TrimPrefix(path, root))
		}
		return err
	}))
}
