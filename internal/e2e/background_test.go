package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// background is a kubectl that goes on running (get -w, logs -f, port-forward).
type background struct {
	mu  sync.Mutex // guards out
	out bytes.Buffer

	closed atomic.Bool // the process has ended; only set where a test asks
}

// Write collects output; it makes background the command's standard output and error.
func (b *background) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *background) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// start runs kubectl in the background until the test ends.
func start(t *testing.T, k kubectlArgv, n *node, args ...string) *background {
	t.Helper()
	b := &background{}
	cmd := exec.Command(k[0], append(append([]string{}, k[1:]...), args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.kubeconfig, "HOME="+filepath.Dir(n.dataDir))
	cmd.Stdout, cmd.Stderr = b, b
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return b
}

// waitFor waits until the output matches pattern and returns the first group, if there is one.
func (b *background) waitFor(t *testing.T, pattern string, limit time.Duration) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	eventually(t, limit, func() string {
		if found = re.FindStringSubmatch(b.text()); found == nil {
			return "no match for " + pattern + " in:\n" + b.text()
		}
		return ""
	})
	return found[len(found)-1]
}

func httpGet(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}
