package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// isolated starts a node in a network namespace of its own, with one address that a default route leads through, and returns
// it with a kubectl in there: one agent in a namespace serves Services, and others may run beside this test.
func isolated(t *testing.T, args ...string) (*node, kubectlArgv) {
	n, k := isolatedUnready(t, args...)
	require.Eventually(t, func() bool {
		return k.run(n, "", "wait", "--for=condition=Ready", "node", "--all", "--timeout=1s").err == nil
	}, time.Minute, 50*time.Millisecond, "%s", n.logTail())
	return n, k
}

func isolatedUnready(t *testing.T, args ...string) (*node, kubectlArgv) {
	needCluster(t)
	for _, program := range []string{"unshare", "nsenter", "ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	n := newNode(filepath.Join(t.TempDir(), "data"), 6443, append([]string{"--node-ip", "192.0.2.10", "--node-name", "isolated"}, args...)...)
	n.wrapper = []string{"unshare", "--net", "sh", "-c", strings.Join([]string{
		"ip link set lo up", "ip link add up0 type veth peer name up1", "ip addr add 192.0.2.10/24 dev up0", "ip addr add 2001:db8::10/64 dev up0 nodad",
		"ip link set up0 up", "ip link set up1 up", "ip route add default via 192.0.2.1", "ip route add default via 2001:db8::1", `exec "$0" "$@"`,
	}, " && ")}
	require.NoError(t, n.start())
	t.Cleanup(n.stop)
	k := kubectlArgv{"nsenter", "--net", "--target", fmt.Sprint(n.cmd.Process.Pid), filepath.Join(binDir, "kontiki"), "kubectl"}
	return n, k
}

// TestServicesAndNames has pods find and reach a Service, the API, and themselves, by name and by address; then the agent
// goes, and the address still works.
func TestServicesAndNames(t *testing.T) {
	n, k := isolated(t)
	k.ok(t, n, "apply", "-f", filepath.Join("..", "..", "examples"))
	k.ok(t, n, "rollout", "status", "deployment/hello", "--timeout=60s")
	address := k.ok(t, n, "get", "service", "hello", "-o", "jsonpath={.spec.clusterIP}")
	pod := strings.Fields(k.ok(t, n, "get", "pods", "-l", "app=hello", "-o", "name"))[0]
	inPod := func(command ...string) string {
		return strings.TrimSpace(k.ok(t, n, append([]string{"exec", pod, "--", "/hello"}, command...)...))
	}
	require.Equal(t, address, inPod("resolve", "hello"))
	require.Equal(t, "10.96.0.1", inPod("resolve", "kubernetes.default"))
	require.Equal(t, "10.96.0.10", inPod("resolve", "kube-dns.kube-system.svc.cluster.local"))
	require.Contains(t, inPod("cat", "/etc/resolv.conf"), "nameserver 10.96.0.10")
	answered := map[string]bool{}
	for range 30 { // itself among them (NW-03)
		answered[inPod("get", "http://hello/")] = true
	}
	require.Len(t, answered, 3, "each of the three pods answers some of 30 requests")

	// A Service without endpoints refuses at once.
	k.ok(t, n, "scale", "deployment/hello", "--replicas=1")
	k.ok(t, n, "wait", "--for=jsonpath={.status.replicas}=1", "deployment/hello", "--timeout=60s")
	k.ok(t, n, "create", "service", "clusterip", "nobody", "--tcp=80")
	refused := k.run(n, "", "exec", "deployment/hello", "--", "/hello", "get", "http://nobody/")
	require.Error(t, refused.err)
	require.Contains(t, refused.stderr, "connection refused")
}
