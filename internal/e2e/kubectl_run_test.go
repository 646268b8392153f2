package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kubectlArgv is how one kubectl is called. Tests that run for each kubectl go through
// eachKubectl; everything else uses the embedded one, which is always there.
type kubectlArgv []string

func embeddedKubectl() kubectlArgv { return kubectlArgv{filepath.Join(binDir, "kontiki"), "kubectl"} }

// eachKubectl runs the test with the embedded kubectl and with the one on PATH, if there is one.
func eachKubectl(t *testing.T, test func(t *testing.T, k kubectlArgv)) {
	t.Run("embedded", func(t *testing.T) { test(t, embeddedKubectl()) })
	t.Run("path", func(t *testing.T) {
		path, err := exec.LookPath("kubectl")
		if err != nil {
			t.Skip("no kubectl on PATH: only the embedded one is tested")
		}
		test(t, kubectlArgv{path})
	})
}

// result is what a finished command left.
type result struct {
	stdout, stderr string
	err            error
}

// run calls kubectl with input on its standard input and a limit of two minutes.
func (k kubectlArgv) run(n *node, input string, args ...string) result {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	argv := append(append([]string{}, k[1:]...), args...)
	cmd := exec.CommandContext(ctx, k[0], argv...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.kubeconfig, "HOME="+filepath.Dir(n.dataDir),
		`KUBE_EDITOR=sed -i s/edit-me/edited/`) // what `kubectl edit` runs
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return result{stdout.String(), stderr.String(), err}
}

// ok runs kubectl, requires exit code 0 and no warning or fall-back noise, and returns standard output.
func (k kubectlArgv) ok(t testing.TB, n *node, args ...string) string {
	t.Helper()
	return k.okInput(t, n, "", args...)
}

func (k kubectlArgv) okInput(t testing.TB, n *node, input string, args ...string) string {
	t.Helper()
	r := k.run(n, input, args...)
	require.NoError(t, r.err, "kubectl %s\n%s%s", strings.Join(args, " "), r.stdout, r.stderr)
	return r.stdout
}

// fails runs kubectl, requires a non-zero exit code, and returns standard error.
func (k kubectlArgv) fails(t testing.TB, n *node, args ...string) string {
	t.Helper()
	r := k.run(n, "", args...)
	require.Error(t, r.err, "kubectl %s\n%s", strings.Join(args, " "), r.stdout)
	return r.stderr
}

func (n *node) tryKubectl(args ...string) (string, error) {
	r := embeddedKubectl().run(n, "", args...)
	return r.stdout + r.stderr, r.err
}

// namespace makes a namespace for one test and removes it afterwards.
func namespace(t testing.TB, n *node) string {
	t.Helper()
	name := "t-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if len(name) > 63 {
		name = name[len(name)-63:]
	}
	name = strings.Trim(name, "-")
	k := embeddedKubectl()
	k.ok(t, n, "create", "namespace", name)
	t.Cleanup(func() { k.run(n, "", "delete", "namespace", name, "--wait=false") })
	return name
}

// eventually polls until check returns an empty string, and fails with its last answer at the deadline.
func eventually(t testing.TB, limit time.Duration, check func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, problem)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
