package runtime_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ruleset is all of nftables' rules.
func ruleset(t *testing.T) string {
	out, err := exec.Command("nft", "list", "ruleset").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// A host port reaches its pod, and its rules go with the pod, also when the runtime does not
// know the pod any more.
func TestHostPort_NW04(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("needs nft")
	}
	h := newHost(t)
	config := h.sandboxConfig("port")
	config.PortMappings = []*runtimeapi.PortMapping{{HostPort: 12080, ContainerPort: 8080}}
	p := h.runPod(config)
	p.start(containerConfig("main", "serve", ":8080"))
	require.Contains(t, ruleset(t), "ip saddr 10.199.7.0/24 ip daddr != 10.199.7.0/24 ip daddr != 224.0.0.0/4 masquerade")
	require.Contains(t, ruleset(t), p.id)
	require.Eventually(t, func() bool {
		r, err := http.Get("http://10.199.7.1:12080/")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, 20*time.Second, 20*time.Millisecond)
	_, err := h.client.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.id})
	require.NoError(t, err)
	require.NotContains(t, ruleset(t), p.id)
	require.False(t, strings.Contains(ruleset(t), "dport 12080"))

	config.Metadata.Name = "again"
	p = h.runPod(config)
	require.Contains(t, ruleset(t), "dport 12080")
	h.forget(p.id)
	require.NotContains(t, ruleset(t), p.id)
	require.NotContains(t, ruleset(t), "dport 12080")
}
