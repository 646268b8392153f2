package imports

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// below reports whether an import path is one of the trees or below it.
func below(imported string, trees []string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		return imported == tree || strings.HasPrefix(imported, tree+"/")
	})
}

func local(dirs ...string) []string {
	for i := range dirs {
		dirs[i] = Module + "/" + dirs[i]
	}
	return dirs
}

var kubernetes = []string{"k8s.io", "sigs.k8s.io"}

// rules say what a tree of packages must not reach, through whatever other package.
var rules = []struct {
	tree  string
	never []string
	why   string
}{
	{"mvcc", append(local("raftstore", "watch", "apiserver", "controllers", "scheduler", "nodeagent", "cmd"),
		append(kubernetes, "github.com/hashicorp", "net", "google.golang.org")...), "mvcc knows no raft, no network, no Kubernetes"},
	{"raftstore", append(local("watch", "apiserver", "controllers", "scheduler", "nodeagent", "cmd"), kubernetes...),
		"the store knows nothing of what is stored"},
	{"watch", local("apiserver", "controllers", "scheduler", "nodeagent", "cmd"), "watch is below the API server"},
	{"apiserver", local("controllers", "scheduler", "nodeagent", "cmd"), "the API server knows only its clients' requests"},
	{"apiserver/registry", local("mvcc", "raftstore", "watch", "apiserver/storage"), "a row does not know where it is kept"},
	{"apiserver/discovery", local("mvcc", "raftstore", "watch", "apiserver/storage"), "discovery is made from the table alone"},
	{"apiserver/openapi", local("mvcc", "raftstore", "watch", "apiserver/storage"), "OpenAPI is made from the table alone"},
	{"controllers", local("mvcc", "raftstore", "watch", "apiserver", "cmd"), "controllers are API clients"},
	{"scheduler", local("mvcc", "raftstore", "watch", "apiserver", "cmd"), "the scheduler is an API client"},
	{"nodeagent", local("mvcc", "raftstore", "watch", "apiserver", "cmd"), "the node agent is an API client"},
	{"cmd/kontiki-shim", kubernetes, "one shim runs for each container: it has to be small"},
}

func TestDirection(t *testing.T) {
	graph, err := Read("../..")
	require.NoError(t, err)
	for _, rule := range rules {
		for dir := range graph {
			if !below(dir, []string{rule.tree}) {
				continue
			}
			way := graph.Path(dir, func(imported string) bool { return below(imported, rule.never) })
			require.Nil(t, way, "%s: %s", rule.why, strings.Join(way, " → "))
		}
	}
}

// Only cmd wires: no package imports a command, and none but commands and tests starts a cluster.
func TestOnlyCommandsWire(t *testing.T) {
	graph, err := Read("../..")
	require.NoError(t, err)
	for dir, imported := range graph {
		for _, i := range imported {
			require.False(t, below(i, local("cmd")), "%s imports the command %s", dir, i)
			require.False(t, below(i, local("internal/testcluster")), "%s imports the test cluster outside of a test", dir)
		}
	}
}

// The etcd server is what tests and the benchmark compare with, and no part of Kontiki.
func TestOnlyTestsRunEtcd(t *testing.T) {
	graph, err := Read("../..")
	require.NoError(t, err)
	for dir, imported := range graph {
		for _, i := range imported {
			require.False(t, below(i, []string{"go.etcd.io/etcd/server"}) && dir != "internal/etcdtest" && dir != "internal/bench/member/etcdmember", "%s runs an etcd", dir)
			require.False(t, below(i, local("internal/etcdtest")), "%s runs an etcd outside of a test", dir)
		}
	}
}

func TestNoDrawers(t *testing.T) {
	graph, err := Read("../..")
	require.NoError(t, err)
	require.Greater(t, len(graph), 10, "the module was not found")
	for dir := range graph {
		require.NotContains(t, []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "types"}, path.Base(dir),
			"%s: name a package for what it provides", dir)
	}
}

// The rules would pass on a graph that Path cannot follow, so Path is tested on one that breaks them.
func TestPathFollowsLocalPackages(t *testing.T) {
	graph := Graph{
		"scheduler":       {"fmt", "kontiki/internal/pki"},
		"internal/pki":    {"kontiki/watch", "kontiki/scheduler"},
		"watch":           {"kontiki/mvcc"},
		"internal/island": {"fmt"},
	}
	mvcc := func(imported string) bool { return imported == "kontiki/mvcc" }
	require.Equal(t, []string{"kontiki/scheduler", "kontiki/internal/pki", "kontiki/watch", "kontiki/mvcc"}, graph.Path("scheduler", mvcc))
	require.Nil(t, graph.Path("internal/island", mvcc))
}
