package apiserver_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/internal/testcluster"
)

// runKubectl is one of the kubectls that tests are run with.
type runKubectl func(cluster *testcluster.Cluster, args ...string) (output string, code int)

// eachKubectl runs the test with the kubectl that is built in and with the one on PATH, if there is one.
func eachKubectl(t *testing.T, test func(t *testing.T, run runKubectl)) {
	t.Run("embedded", func(t *testing.T) { test(t, kubectl) })
	t.Run("path", func(t *testing.T) {
		if _, err := exec.LookPath("kubectl"); err != nil {
			t.Skip("no kubectl on PATH: only the embedded one is tested")
		}
		test(t, kubectlOnPath)
	})
}

func kubectlOnPath(cluster *testcluster.Cluster, args ...string) (output string, code int) {
	command := exec.Command("kubectl", append([]string{"--kubeconfig", cluster.Kubeconfig(), "--cache-dir", cluster.Dir + "/cache"}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		code = max(command.ProcessState.ExitCode(), 1)
	}
	return string(out), code
}

// Manifests of the size, and with the features, of those that people apply first: each kubectl applies them by either
// way, finds no difference to what it has applied and exactly the one that it makes, changes from one way to the other, and
// deletes everything again.
func TestManifestsThatPeopleApplyFirst(t *testing.T) {
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	cluster, _ := start(t)
	eachKubectl(t, func(t *testing.T, run runKubectl) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { applyManifest(t, cluster, run, file) })
		}
	})
}

func applyManifest(t *testing.T, cluster *testcluster.Cluster, run runKubectl, file string) {
	ok := func(args ...string) string {
		t.Helper()
		out, code := run(cluster, args...)
		require.Zero(t, code, "kubectl %s\n%s", strings.Join(args, " "), out)
		require.NotContains(t, out, "Warning", "kubectl %s", strings.Join(args, " "))
		return out
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	objects := strings.Count("\n"+string(text), "\nkind: ")

	require.Equal(t, objects, strings.Count(ok("apply", "-f", file), " created\n"))
	// kubectl says "configured" of what it sends and not of what changes: nothing does.
	versions := func() string { return ok("get", "-f", file, "-o", "jsonpath={.items[*].metadata.resourceVersion}") }
	created := versions()
	require.NotContains(t, ok("apply", "-f", file), " created")
	require.Equal(t, created, versions())
	require.Empty(t, ok("diff", "-f", file))
	// By force: a list with one owner is another one to server-side apply when defaults have been filled into it.
	require.Equal(t, objects, strings.Count(ok("apply", "--server-side", "--force-conflicts", "-f", file), " serverside-applied\n"))
	require.Empty(t, ok("diff", "--server-side", "-f", file))

	changed := filepath.Join(t.TempDir(), filepath.Base(file))
	require.NoError(t, os.WriteFile(changed, []byte(strings.ReplaceAll(string(text), "registry.example", "mirror.example")), 0o600))
	diff, code := run(cluster, "diff", "--server-side", "-f", changed)
	require.Equal(t, 1, code, diff)
	require.Contains(t, diff, "mirror.example")

	require.Equal(t, objects, strings.Count(ok("delete", "--wait=false", "-f", file), " deleted"))
	freeNamespaces(t, cluster)
}

// freeNamespaces does what the namespace controller would: what is in a namespace that is going goes, then itself.
func freeNamespaces(t *testing.T, cluster *testcluster.Cluster) {
	t.Helper()
	for _, namespace := range []string{"edge", "monitor", "data", "gitops", "pki", "monitoring", "doors", "apps"} {
		out, code := kubectl(cluster, "get", "namespace", namespace, "--ignore-not-found", "-o", "name")
		require.Zero(t, code, out)
		if out == "" {
			continue
		}
		out, code = kubectl(cluster, "delete", "--raw", "/api/v1/namespaces/"+namespace+"/persistentvolumeclaims")
		require.Zero(t, code, out)
		finalize := filepath.Join(t.TempDir(), namespace+".json")
		body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + namespace + `"},"spec":{"finalizers":[]}}`
		require.NoError(t, os.WriteFile(finalize, []byte(body), 0o600))
		out, code = kubectl(cluster, "replace", "--raw", "/api/v1/namespaces/"+namespace+"/finalize", "-f", finalize)
		require.Zero(t, code, out)
	}
}
