package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pods of TestNetworkPolicies: a server, and a client on its machine and on the other.
const policyPods = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: s1
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: "kontiki.local/hello:latest", imagePullPolicy: Never, ports: [{name: http, containerPort: 8080}], readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}}
---
apiVersion: v1
kind: Pod
metadata: {name: near, labels: {app: near}}
spec:
  nodeName: s1
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "kontiki.local/hello:latest", imagePullPolicy: Never}]
---
apiVersion: v1
kind: Pod
metadata: {name: far, labels: {app: far}}
spec:
  nodeName: a1
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "kontiki.local/hello:latest", imagePullPolicy: Never}]
`

// policyOf is a NetworkPolicy.
func policyOf(name, spec string) string {
	return fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

// TestNetworkPolicies has two nodes enforce policies that the API server has, with the peers that the controller looks up:
// a pod that is denied everything, one that is let in by its labels, one whose labels change, one that starts when it is
// bound already, policies that go.
func TestNetworkPolicies(t *testing.T) {
	l := &traffic{labCLI: newLab(t, "--servers", "1", "--agents", "1"), api: "s1"}
	l.eventually("the pods", func() error { return l.apply(policyPods) })
	l.must("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
	reaches := func(when, pod string, want bool) {
		t.Helper()
		l.eventually(when+", from "+pod, func() error {
			argv := l.kubectlArgv("exec", pod, "--", "/hello", "reach", "--within", "3s", "http://web/")
			out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
			if want && err == nil || !want && strings.Contains(string(out), "FAILED") {
				return nil
			}
			return fmt.Errorf("wanted %v, got %v: %s", want, err, out)
		})
	}
	apply := func(policy string) { t.Helper(); l.eventually("a policy", func() error { return l.apply(policy) }) }
	reaches("without policies", "near", true)
	reaches("without policies", "far", true)

	apply(policyOf("web", "{podSelector: {matchLabels: {app: web}}}"))
	reaches("nobody is let in", "near", false)
	reaches("nobody is let in", "far", false)
	address := l.must("get", "pod", "web", "-o", "jsonpath={.status.podIP}")
	l.eventually("its own machine reaches the pod, as probes do", func() error {
		out, err := l.run("exec", "s1", "--", filepath.Join(binDir, "hello"), "reach", "http://"+address+":8080/")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})

	apply(policyOf("web", "{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: far}}}], ports: [{port: http}]}]}"))
	reaches("far is let in", "far", true)
	reaches("far is let in", "near", false)
	l.must("label", "pod", "near", "app=far", "--overwrite")
	reaches("called far", "near", true)

	apply(policyOf("bound", "{podSelector: {matchLabels: {bound: 'yes'}}, policyTypes: [Egress]}"))
	l.must("label", "pod", "far", "bound=yes")
	reaches("it may not send", "far", false) // so its node knows the policy
	l.eventually("a pod that is bound from the start", func() error {
		return l.apply(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late", "labels": {"bound": "yes", "app": "far"}}, "spec": {"nodeName": "a1",
			"restartPolicy": "Never", "containers": [{"name": "c", "image": "kontiki.local/hello:latest", "imagePullPolicy": "Never",
			"args": ["reach", "--within", "3s", "http://web/", "dns://web"]}]}}`)
	})
	l.must("wait", "--for=jsonpath={.status.phase}=Failed", "pod/late", "--timeout=60s")
	log := l.must("logs", "late")
	require.Contains(t, log, "http://web/ FAILED")
	require.NotContains(t, log, "dns://web FAILED", "a pod always reaches its own node, which serves DNS")

	l.must("delete", "networkpolicy", "--all")
	l.must("label", "pod", "near", "app=near", "--overwrite")
	reaches("the policies are gone", "near", true)
	reaches("the policies are gone", "far", true)
	l.eventually("no peers are left", func() error {
		slices, err := l.kubectl("s1", "get", "endpointslices", "-l", "endpointslice.kubernetes.io/managed-by=networkpolicy-controller.kontiki.io", "-o", "name")
		if err == nil && strings.TrimSpace(slices) != "" {
			err = errors.New(slices)
		}
		return err
	})
}
