package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The drills of docs/drills, whose commands these tests run. Lost quorum is TestStoreRecover_RF11, expired certificates
// TestExpiredCluster_RB06.

// TestRollingUpgradeAndColdStart_RF12: servers get another version one after the other, while the others take writes; then all
// lose power, and any two of them serve again, in all six orders.
func TestRollingUpgradeAndColdStart_RF12(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three servers")
	}
	t.Parallel()
	a, b, c := startThree(t)
	all := []*testServer{a, b, c}
	for i, s := range all {
		other := all[(i+1)%3]
		s.stop()
		other.kubectl("create", "configmap", fmt.Sprint("without-", s.name)) // leadership was handed over: nothing waits for an election
		s.env = []string{otherVersion + "=v9"}
		s.start("--join", other.url())
		s.ready()
		require.Contains(t, s.logged(), "version=v9")
		a.voters(3)
		require.Equal(t, "configmap/without-"+s.name, s.kubectl("get", "configmap", "without-"+s.name, "-o", "name"), "it has what was written meanwhile")
	}
	a.store("hash")

	for _, order := range [][]*testServer{{a, b, c}, {a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}} {
		first, second, third := order[0], order[1], order[2]
		for _, s := range all {
			s.kill()
		}
		first.start("--join", third.url()) // as the unit has it, and nobody is there
		second.start("--join", third.url())
		first.ready()
		second.ready()
		name := "without-" + third.name + "-after-" + first.name
		first.kubectl("create", "configmap", name)
		third.start("--join", first.url())
		third.ready()
		a.voters(3)
		require.Equal(t, "configmap/"+name, third.kubectl("get", "configmap", name, "-o", "name"))
	}
	for _, s := range all {
		c.kubectl("get", "configmap", "without-"+s.name)
	}
}

// TestBackupAndRestore: a cluster with running pods goes back to a snapshot: objects that were deleted since are there with
// their UIDs and resourceVersions, those that were made since are not, and pods run again.
func TestBackupAndRestore(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for pods")
	}
	t.Parallel()
	s := newServer(t, "n1")
	node := []string{"--agent=true", "--node-runtime", "simulated", "--agent-port", freePort(t)}
	s.start(node...)
	s.ready()
	s.kubectl("create", "deployment", "web", "--image", "any", "--replicas", "2")
	running := func() bool {
		return s.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.phase}") == "Running Running"
	}
	require.Eventually(t, running, time.Minute, 100*time.Millisecond)
	const identity = "jsonpath={.metadata.uid} {.metadata.resourceVersion}"
	s.kubectl("create", "configmap", "before")
	before := s.kubectl("get", "configmap", "before", "-o", identity)
	pods := s.kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
	file := filepath.Join(t.TempDir(), "kontiki.snapshot")
	s.store("snapshot", "save", file)

	s.kubectl("delete", "deployment", "web")
	s.kubectl("delete", "configmap", "before")
	s.kubectl("create", "configmap", "after")
	require.Eventually(t, func() bool { return s.kubectl("get", "pods", "-o", "name") == "" }, time.Minute, 100*time.Millisecond)
	s.stop()
	require.NoError(t, os.Rename(filepath.Join(s.dir, "store"), filepath.Join(s.dir, "store.lost")))
	s.store("snapshot", "restore", file)
	s.start(node...)
	s.ready()
	require.Equal(t, before, s.kubectl("get", "configmap", "before", "-o", identity))
	require.NotContains(t, s.kubectl("get", "configmaps", "-o", "name"), "after")
	require.Eventually(t, running, time.Minute, 100*time.Millisecond)
	require.ElementsMatch(t, strings.Fields(pods), strings.Fields(s.kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")))
}
