package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/console"
	"github.com/stretchr/testify/require"
)

// TestExecTerminal types into a container through a terminal, as `kubectl exec -it` at a prompt does.
func TestExecTerminal(t *testing.T) {
	n := shared(t)
	eachKubectl(t, func(t *testing.T, k kubectlArgv) {
		ns := namespace(t, n)
		k.okInput(t, n, deployment("tty", 1), "-n", ns, "apply", "-f", "-")
		k.ok(t, n, "-n", ns, "rollout", "status", "deployment/tty", "--timeout=60s")

		terminal, screen := startInTerminal(t, k, n, "-n", ns, "exec", "-it", "deployment/tty", "--", "/hello", "upper")
		_, err := io.WriteString(terminal, "kon-tiki\n")
		require.NoError(t, err)
		screen.waitFor(t, `KON-TIKI\r\n`, time.Minute)
		_, err = io.WriteString(terminal, "\x04") // end of input, typed
		require.NoError(t, err)
		eventually(t, time.Minute, func() string {
			if screen.closed.Load() {
				return ""
			}
			return "kubectl goes on after the end of input"
		})
	})
}

// startInTerminal runs kubectl with a pseudo terminal as its standard streams.
func startInTerminal(t *testing.T, k kubectlArgv, n *node, args ...string) (console.Console, *background) {
	t.Helper()
	terminal, path, err := console.NewPty()
	require.NoError(t, err)
	slave, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, terminal.Resize(console.WinSize{Height: 24, Width: 80}))
	cmd := exec.Command(k[0], append(append([]string{}, k[1:]...), args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.kubeconfig, "HOME="+filepath.Dir(n.dataDir), "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	slave.Close()
	screen := &background{}
	go func() { _, _ = io.Copy(screen, terminal) }() // ends when both ends are closed
	go func() { _ = cmd.Wait(); screen.closed.Store(true) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		terminal.Close()
	})
	return terminal, screen
}
