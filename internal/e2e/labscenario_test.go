package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// labScenarios runs all scenario files; then two of them with a fault planted, which they must notice.
func labScenarios(l *labCLI) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "labs", "*.yaml"))
	require.NoError(l.t, err)
	require.Len(l.t, files, 8)
	for _, file := range files {
		l.t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			l := &labCLI{t: t, dir: l.dir}
			l.ok("wait")
			require.Contains(t, l.ok("run", file), "All of it held")
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
