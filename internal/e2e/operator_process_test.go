package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// operatorDir is the example that these tests run.
var operatorDir = filepath.Join("..", "..", "examples", "operator")

// siteOperators runs processes of examples/operator outside the cluster, with the rights of its account.
type siteOperators struct {
	t          *testing.T
	dir        string
	kubeconfig string
	port       atomic.Int32 // of the webhook of the last one
}

// installSites applies what an administrator applies before the operator runs, and removes it after the test.
func installSites(t *testing.T, n *node) *siteOperators {
	t.Helper()
	if _, err := os.Stat(filepath.Join(binDir, "site-operator")); err != nil {
		t.Skip("needs bin/site-operator: run `make bin/site-operator` first")
	}
	k := embeddedKubectl()
	k.ok(t, n, "apply", "-k", filepath.Join(operatorDir, "config"))
	t.Cleanup(func() {
		k.run(n, "", "delete", "-k", filepath.Join(operatorDir, "config"), "--wait=false", "--ignore-not-found")
	})
	o := &siteOperators{t: t, dir: t.TempDir()}
	o.port.Store(9440)
	o.kubeconfig = filepath.Join(o.dir, "kubeconfig")
	admin, err := os.ReadFile(n.kubeconfig)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(o.kubeconfig, admin, 0o600))
	token := strings.TrimSpace(k.ok(t, n, "-n", "site-system", "create", "token", "site-operator"))
	k.ok(t, n, "--kubeconfig", o.kubeconfig, "config", "set-credentials", "site-operator", "--token="+token)
	k.ok(t, n, "--kubeconfig", o.kubeconfig, "config", "set-context", "--current", "--user=site-operator")
	return o
}

// siteOperator is one process.
type siteOperator struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *background
	done chan struct{}
}

// start runs one more operator, whose webhook is at a port of its own.
func (o *siteOperators) start() *siteOperator {
	o.t.Helper()
	port := o.port.Add(1)
	p := &siteOperator{t: o.t, out: &background{}, done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(binDir, "site-operator"), "--kubeconfig", o.kubeconfig,
		"--webhook-url", fmt.Sprintf("https://127.0.0.1:%d/convert", port), "--cert-dir", filepath.Join(o.dir, fmt.Sprint(port)))
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	require.NoError(o.t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	o.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if o.t.Failed() {
			o.t.Logf("operator: %s", p.out.text())
		}
	})
	return p
}

// stop ends it as Ctrl-C does, which gives its lease back.
func (p *siteOperator) stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		require.FailNow(p.t, "the operator does not stop", p.out.text())
	}
}
