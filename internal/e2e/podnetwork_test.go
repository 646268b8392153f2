package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDualStack: node, pods and Services have addresses of both IP families, names lead to both, and both are answered.
func TestDualStack(t *testing.T) {
	n, k := isolated(t, "--node-ip", "192.0.2.10,2001:db8::10", "--cluster-cidr", "10.244.0.0/16,fd00:244::/48", "--service-cidr", "10.96.0.0/16,fd00:96::/112")
	require.Equal(t, "192.0.2.10 2001:db8::10", k.ok(t, n, "get", "node", "isolated", "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`))
	require.Equal(t, "10.244.0.0/24 fd00:244::/64", k.ok(t, n, "get", "node", "isolated", "-o", "jsonpath={.spec.podCIDRs[*]}"))
	k.ok(t, n, "apply", "-f", filepath.Join("..", "..", "examples", "hello.yaml"))
	k.ok(t, n, "patch", "service", "hello", "-p", `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`)
	k.ok(t, n, "rollout", "status", "deployment/hello", "--timeout=60s")
	pod := strings.Fields(k.ok(t, n, "get", "pods", "-l", "app=hello", "-o", "name"))[0]
	podIPs := strings.Fields(k.ok(t, n, "get", pod, "-o", "jsonpath={.status.podIPs[*].ip}"))
	require.Len(t, podIPs, 2)
	require.True(t, strings.HasPrefix(podIPs[0], "10.244.0.") && strings.HasPrefix(podIPs[1], "fd00:244::"), podIPs)
	require.Equal(t, "192.0.2.10 2001:db8::10", k.ok(t, n, "get", pod, "-o", "jsonpath={.status.hostIPs[*].ip}"))
	clusterIPs := strings.Fields(k.ok(t, n, "get", "service", "hello", "-o", "jsonpath={.spec.clusterIPs[*]}"))
	require.Len(t, clusterIPs, 2)

	inPod := func(command ...string) string {
		return strings.TrimSpace(k.ok(t, n, append([]string{"exec", pod, "--", "/hello"}, command...)...))
	}
	require.ElementsMatch(t, clusterIPs, strings.Fields(inPod("resolve", "hello")))
	require.Contains(t, inPod("cat", "/etc/resolv.conf"), "nameserver 10.96.0.10\nnameserver fd00:96::a\n")
	for _, host := range []string{"hello", clusterIPs[0], "[" + clusterIPs[1] + "]", podIPs[0] + ":8080", "[" + podIPs[1] + "]:8080"} {
		require.Eventually(t, func() bool { // the slices of the second family may still be on their way
			out := k.run(n, "", "exec", pod, "--", "/hello", "get", "http://"+host+"/")
			return out.err == nil && strings.Contains(out.stdout, "Hello from the raft!")
		}, time.Minute, 50*time.Millisecond, host)
	}
	require.Equal(t, "10.96.0.10 fd00:96::a", k.ok(t, n, "-n", "kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIPs[*]}"))
}

// TestForeignCNI: with --cni none the node is not ready, says why, and runs no pods until an add-on has brought a configuration.
func TestForeignCNI(t *testing.T) {
	confDir := filepath.Join(t.TempDir(), "net.d")
	n, k := isolatedUnready(t, "--cni", "none", "--cni-conf-dir", confDir)
	const message = `jsonpath={.status.conditions[?(@.type=="Ready")].message}`
	require.Eventually(t, func() bool {
		out := k.run(n, "", "get", "node", "isolated", "-o", message)
		return out.err == nil && strings.Contains(out.stdout, "reason:NetworkPluginNotReady message:pod network is not ready: no CNI configuration in "+confDir)
	}, time.Minute, 50*time.Millisecond)
	k.ok(t, n, "run", "early", "--image=kontiki.local/hello:latest", "--image-pull-policy=IfNotPresent")
	entries, err := os.ReadDir(confDir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is written")

	conf := `{"cniVersion":"1.0.0","name":"addon","plugins":[{"type":"bridge","bridge":"addon0","isGateway":true,
		"ipam":{"type":"host-local","dataDir":"` + t.TempDir() + `","ranges":[[{"subnet":"10.77.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}`
	require.NoError(t, os.WriteFile(filepath.Join(confDir, "10-addon.conflist"), []byte(conf), 0o644))
	k.ok(t, n, "wait", "--for=condition=Ready", "node/isolated", "pod/early", "--timeout=60s")
	require.True(t, strings.HasPrefix(k.ok(t, n, "get", "pod", "early", "-o", "jsonpath={.status.podIP}"), "10.77.0."))
	k.ok(t, n, "delete", "pod", "early", "--grace-period=1", "--timeout=60s")
}
