package apiserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/internal/testcluster"
)

// Definitions of the size and kind that well-known operators bring, and objects of them: what holds for manifests of
// built-in kinds holds for these, in either kubectl and by either way of applying.
func TestOperatorsThatPeopleInstallFirst(t *testing.T) {
	folders, err := filepath.Glob("testdata/operators/*")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	cluster, _ := start(t)
	eachKubectl(t, func(t *testing.T, run runKubectl) {
		for _, folder := range folders {
			t.Run(filepath.Base(folder), func(t *testing.T) { installManifests(t, cluster, run, folder) })
		}
	})
}

func installManifests(t *testing.T, cluster *testcluster.Cluster, run runKubectl, folder string) {
	ok := func(args ...string) string {
		t.Helper()
		out, code := run(cluster, args...)
		require.Zero(t, code, "kubectl %s\n%s", strings.Join(args, " "), out)
		require.NotContains(t, out, "Warning", "kubectl %s", strings.Join(args, " "))
		return out
	}
	file := filepath.Join(folder, "definitions.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	definitions := strings.Count("\n"+string(text), "\nkind: ")

	require.Equal(t, definitions, strings.Count(ok("apply", "--server-side", "-f", file), " serverside-applied\n"))
	require.Equal(t, definitions, strings.Count(ok("wait", "--for=condition=Established", "-f", file, "--timeout=60s"), " condition met\n"))
	require.Empty(t, ok("diff", "--server-side", "-f", file))
	applyManifest(t, cluster, run, filepath.Join(folder, "objects.yaml"))
	// The other way to apply, on top: it owns what it sends, and changes nothing.
	versions := func() string {
		return ok("get", "-f", file, "-o", "jsonpath={.items[*].metadata.generation} {.metadata.generation}")
	}
	before := versions()
	require.NotContains(t, ok("apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", file), " created")
	require.Equal(t, before, versions())
	require.Equal(t, definitions, strings.Count(ok("delete", "-f", file, "--timeout=60s"), " deleted"))
}
