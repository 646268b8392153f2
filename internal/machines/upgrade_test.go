package machines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRollingUpgrade follows docs/drills/rolling-upgrade.md from the version in -machines.old to this one, while somebody
// writes: pods run on, and what was acknowledged is kept.
func TestRollingUpgrade(t *testing.T) {
	if *image != "" && *oldBin == "" {
		t.Skip("needs -machines.old: make three-machines OLD_BIN=…")
	}
	s := newSite(t, *oldBin)
	for _, step := range s.section("three-nodes.md", "Three commands").Steps {
		s.follow([]Step{step})
		s.await(step.Machine, "systemctl is-active kontiki-server", "active") // the first versions did not wait for it
	}
	s.run("n1", threePods)
	s.whole("n1")
	old, before, written := s.run("n1", "kontiki version"), s.run("n1", containers), s.write("n2")
	for _, m := range s.machines {
		bin := filepath.Join(m.root, "root/bin")
		require.NoError(t, os.RemoveAll(bin))
		require.NoError(t, copyTree(s.ctx(), "../../bin", bin))
	}

	for _, step := range s.section("drills/rolling-upgrade.md", "").Steps {
		s.follow([]Step{step})
		if strings.Contains(step.Command, "members") {
			s.await(step.Machine, voters, "3")
		}
	}
	written.stop()
	s.whole("n1")
	require.Equal(t, before, s.run("n1", containers), "pods run on")
	for name := range s.machines {
		require.NotEqual(t, old, s.run(name, "kontiki version"))
	}
	written.requireKept("n1")
}
