package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deployment is a Deployment of the test image, labelled app=name.
func deployment(name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: hello
        image: kontiki.local/hello:latest
        imagePullPolicy: IfNotPresent
        ports: [{containerPort: 8080}]
        readinessProbe:
          httpGet: {path: /, port: 8080}
          periodSeconds: 1
`, name, replicas)
}

// TestExamples applies examples/ as the README does and follows the objects to running containers.
func TestExamples(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		examples := filepath.Join("..", "..", "examples")
		k.ok(t, n, "-n", ns, "apply", "-f", examples)
		k.ok(t, n, "-n", ns, "rollout", "status", "deployment/hello", "--timeout=60s")

		wide := k.ok(t, n, "-n", ns, "get", "deploy,rs,pods,svc", "-o", "wide")
		require.Contains(t, wide, "deployment.apps/hello")
		require.Contains(t, wide, "3/3")
		require.Contains(t, wide, "kontiki.local/hello:latest")
		require.Regexp(t, `pod/hello-\S+ +1/1 +Running +0 `, wide)
		require.Regexp(t, `service/hello +ClusterIP +10\.96\.`, wide)

		addresses := strings.Fields(k.ok(t, n, "-n", ns, "get", "endpointslices", "-l", "kubernetes.io/service-name=hello",
			"-o", "jsonpath={.items[*].endpoints[*].addresses[0]}"))
		require.Len(t, addresses, 3, "one endpoint for each ready pod")

		again := k.ok(t, n, "-n", ns, "apply", "-f", examples)
		require.NotContains(t, again, "configured", "applying the same files again changes nothing")
		require.NotContains(t, again, "created")
	})
}

// TestWatchFromKubectl sees a pod appear, run and go through `kubectl get -w`.
func TestWatchFromKubectl(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		watch := start(t, k, n, "-n", ns, "get", "pods", "-w", "--output-watch-events")
		k.okInput(t, n, deployment("w", 1), "-n", ns, "apply", "-f", "-")
		watch.waitFor(t, `(?m)^ADDED +w-\S+ +0/1 +(?:Pending|ContainerCreating)`, time.Minute)
		watch.waitFor(t, `(?m)^MODIFIED +w-\S+ +1/1 +Running`, time.Minute)
		k.ok(t, n, "-n", ns, "delete", "deployment", "w")
		watch.waitFor(t, `(?m)^MODIFIED +w-\S+ +1/1 +Terminating`, time.Minute)
		watch.waitFor(t, `(?m)^DELETED +w-`, time.Minute)
	})
}

// TestDescribeLogsExec looks into a running pod.
func TestDescribeLogsExec(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		k.okInput(t, n, deployment("look", 1), "-n", ns, "apply", "-f", "-")
		k.ok(t, n, "-n", ns, "rollout", "status", "deployment/look", "--timeout=60s")
		pod := k.ok(t, n, "-n", ns, "get", "pods", "-l", "app=look", "-o", "jsonpath={.items[0].metadata.name}")

		text := k.ok(t, n, "-n", ns, "describe", "pod", pod)
		for _, want := range []string{"Status: +Running", "Scheduled", "Successfully assigned", "Started", "IP: +10\\.244\\.", "Ready +True"} {
			require.Regexp(t, want, text)
		}
		require.NotEmpty(t, k.ok(t, n, "-n", ns, "logs", pod))
		require.NotEmpty(t, k.ok(t, n, "-n", ns, "logs", "deployment/look", "--tail=1"))

		require.Equal(t, "one two\n", k.ok(t, n, "-n", ns, "exec", pod, "--", "/hello", "echo", "one", "two"))
		sum := k.okInput(t, n, strings.Repeat("x", 1<<20), "-n", ns, "exec", "-i", pod, "--", "/hello", "sha256")
		require.Equal(t, "8f990ba0b577b51cf009ea049368c16b", sum[:32], "a mebibyte of x arrives whole")
		r := k.run(n, "", "-n", ns, "exec", pod, "--", "/hello", "exit", "3")
		require.ErrorContains(t, r.err, "exit status 3")
		require.Contains(t, r.stderr, "exit code 3")
	})
}

// TestPortForward reaches a container through the API server.
func TestPortForward(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		k.okInput(t, n, deployment("pf", 1), "-n", ns, "apply", "-f", "-")
		k.ok(t, n, "-n", ns, "rollout", "status", "deployment/pf", "--timeout=60s")
		forward := start(t, k, n, "-n", ns, "port-forward", "deployment/pf", ":8080")
		port := forward.waitFor(t, `Forwarding from 127\.0\.0\.1:(\d+)`, time.Minute)
		for range 20 {
			require.Contains(t, httpGet(t, "http://127.0.0.1:"+port+"/"), "pf-")
		}
	})
}
