package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// labScenarios runs all scenario files, two in a command; then two of them with a fault planted, which they must notice.
func labScenarios(l *labCLI) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "labs", "*.yaml"))
	require.NoError(l.t, err)
	require.Len(l.t, files, 8)
	for pair := range slices.Chunk(files, 2) { // a command must know what the scenario before has left
		l.t.Run(filepath.Base(pair[0])+" and the next", func(t *testing.T) {
			l := &labCLI{t: t, dir: l.dir}
			l.ok("wait")
			require.Equal(t, 2, strings.Count(l.ok("run", pair[0], pair[1]), "All of it held"))
		})
	}
	for _, planted := range []struct{ file, at, fault, notices string }{
		// A server that is cut off, and answers as if it were not.
		{"stale-read-refused", "  - run: lab partition ${one} | ${leader},${two}\n", "", "it succeeded, and should not: 2"},
		// A write in the minority that was kept.
		{
			"minority-partition", "  - run: kubectl get configmap in-the-minority\n",
			"  - run: kubectl create configmap in-the-minority\n  - run: kubectl get configmap in-the-minority\n", "it succeeded, and should not",
		},
	} {
		l.t.Run(planted.file+" with a fault", func(t *testing.T) {
			l := &labCLI{t: t, dir: l.dir}
			l.ok("wait")
			text, err := os.ReadFile(filepath.Join("..", "..", "docs", "labs", planted.file+".yaml"))
			require.NoError(t, err)
			require.Contains(t, string(text), planted.at)
			file := filepath.Join(t.TempDir(), "planted.yaml")
			require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), planted.at, planted.fault, 1)), 0o600))
			out, err := l.run("run", file)
			require.Error(t, err, out)
			require.Contains(t, out, planted.notices)
		})
	}
}
