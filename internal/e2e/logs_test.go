package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLogs prints, restarts and follows.
func TestLogs(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		pod := `apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: kontiki.local/hello:latest
    imagePullPolicy: IfNotPresent
    command: [/hello, lines, "101", "0", "100", "1"] # 101 lines in a second, then exit code 1
`
		k.okInput(t, n, pod, "-n", ns, "apply", "-f", "-")
		k.ok(t, n, "-n", ns, "wait", "--for=jsonpath={.status.phase}=Running", "pod/p", "--timeout=60s")
		follow := start(t, k, n, "-n", ns, "logs", "-f", "p")
		eventually(t, 60*time.Second, func() string {
			restarts := k.ok(t, n, "-n", ns, "get", "pod", "p", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
			if restarts == "" || restarts == "0" {
				return "the container has not been restarted"
			}
			return ""
		})
		previous := strings.Fields(k.ok(t, n, "-n", ns, "logs", "p", "--previous"))
		require.NotEmpty(t, previous)
		require.Len(t, strings.Split(strings.TrimSpace(k.ok(t, n, "-n", ns, "logs", "p", "--previous", "--tail=7")), "\n"), 7)
		follow.waitFor(t, `line 100`, time.Minute)
	})
}
