package hostcheck

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLackingNamesWhat(t *testing.T) {
	if os.Geteuid() != 0 {
		require.Equal(t, "root: not running as root", Lacking("/does/not/exist", ""))
		return
	}
	require.Contains(t, Lacking("/does/not/exist", ""), "runc: ")
}

func TestCgroups(t *testing.T) {
	empty := t.TempDir()
	require.ErrorContains(t, cgroups(empty, ""), "none mounted")

	v1 := t.TempDir()
	for _, controller := range []string{"cpu", "memory"} {
		require.NoError(t, os.Mkdir(filepath.Join(v1, controller), 0o755))
	}
	require.NoError(t, cgroups(v1, "kontiki"))
	left, err := filepath.Glob(filepath.Join(v1, "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "the check leaves nothing")

	v2 := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(v2, "cgroup.controllers"), nil, 0o644))
	require.Error(t, cgroups(v2, ""), "no subtree_control")
	require.NoError(t, os.WriteFile(filepath.Join(v2, "cgroup.subtree_control"), []byte("cpu memory pids\n"), 0o644))
	require.NoError(t, cgroups(v2, ""))
}

func TestNodeIPIsOneOfOurs(t *testing.T) {
	require.NotNil(t, NodeIP().To4())
}
