package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the cluster agrees on is written when it is new, and not again: a start must not need room on a full disk.
func TestClusterIsNotedOnce(t *testing.T) {
	h := &agentHost{dir: &dataDir{path: t.TempDir()}, options: &options{}}
	h.options.network.clusterDomain = "one.local"
	file := filepath.Join(h.dir.path, clusterFile)
	require.NoError(t, h.noteCluster())
	first, err := os.Stat(file)
	require.NoError(t, err)

	require.NoError(t, h.noteCluster())
	again, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, os.SameFile(first, again), "it was written anew")

	h.options.network.clusterDomain = "two.local"
	require.NoError(t, h.noteCluster())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "two.local")
}
