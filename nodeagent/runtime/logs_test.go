package runtime_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What a program has flushed is in the log, newline or not.
func TestPartialLineReachesTheLog(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("partial"))
	id := p.start(containerConfig("main", "partial", "password: ", "1h"))
	h.waitLog(id, "password: ")
	b, err := os.ReadFile(h.status(id).LogPath)
	require.NoError(t, err)
	require.Contains(t, string(b), " stdout P password: \n")
}

// Rotation while the container writes loses nothing and duplicates nothing.
func TestRotation_ND06(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("rotate"))
	const lines, size = 20000, 100
	id := p.start(containerConfig("main", "lines", fmt.Sprint(lines), fmt.Sprint(size), "20000"))
	path := h.status(id).LogPath
	var rotated []string
	for i := 0; h.status(id).State == runtimeapi.ContainerState_CONTAINER_RUNNING; i++ {
		st, err := os.Stat(path)
		require.NoError(t, err)
		if st.Size() < 100_000 {
			continue
		}
		name := fmt.Sprintf("%s.%d", path, i)
		require.NoError(t, os.Rename(path, name))
		rotated = append(rotated, name)
		_, err = h.client.ReopenContainerLog(t.Context(), &runtimeapi.ReopenContainerLogRequest{ContainerId: id})
		if err != nil { // it ended at this moment
			require.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, h.waitExit(id).State)
			f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600) // it may have been reopened before
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	require.NotEmpty(t, rotated)
	var all strings.Builder
	for _, name := range append(rotated, path) {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
			all.WriteString(fields[3])
			if fields[2] == "F" {
				all.WriteByte('\n')
			}
		}
	}
	got := strings.Split(strings.TrimSpace(all.String()), "\n")
	require.Equal(t, lines, len(got), "lines lost or doubled")
	seen := map[string]bool{}
	for _, line := range got {
		require.False(t, seen[line], "twice: %s", line)
		seen[line] = true
	}
}
