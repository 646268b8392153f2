package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"kontiki/internal/freeport"
	"kontiki/internal/joining"
)

// runAsKontiki makes the test binary be the program, so that tests see it as a shell does.
const runAsKontiki = "KONTIKI_TEST_RUN"

// A program of another version is this one with what the linker would have set.
const (
	otherVersion  = "KONTIKI_TEST_VERSION"
	otherProtocol = "KONTIKI_TEST_PROTOCOL"
)

func TestMain(m *testing.M) {
	if os.Getenv(runAsKontiki) != "" {
		version = cmp.Or(os.Getenv(otherVersion), version)
		joining.Protocol = cmp.Or(os.Getenv(otherProtocol), joining.Protocol)
		main()
		return
	}
	os.Exit(m.Run())
}

func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), runAsKontiki+"=1")
	return cmd
}

// run runs a command to its end.
func run(args ...string) (stdout, stderr string, code int) {
	cmd := program(args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run()
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

func freePort(t *testing.T) string {
	port, err := freeport.Take()
	require.NoError(t, err)
	return strconv.Itoa(port)
}

// devProcess is a running `kontiki dev` with a simulated node.
type devProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	log   string // file with its standard error
	ended chan struct{}
}

// startDev starts dev and waits until it says that it is up. The first three of args are ports: of the API
// server, of the agent and of the store's clients.
func startDev(t *testing.T, dir string, args ...string) *devProcess {
	d := &devProcess{t: t, log: filepath.Join(t.TempDir(), "log"), ended: make(chan struct{})}
	d.cmd = program(append([]string{"dev", "--data-dir", dir, "--bind-address", "127.0.0.1", "--https-port", args[0],
		"--agent-port", args[1], "--client-port", args[2], "--node-name", "n1", "--node-runtime", "simulated"}, args[3:]...)...)
	log, err := os.Create(d.log)
	require.NoError(t, err)
	defer log.Close()
	d.cmd.Stderr = log
	out, err := d.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, d.cmd.Start())
	t.Cleanup(func() { _ = d.cmd.Process.Kill(); <-d.ended })
	up := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		up <- line
		_ = d.cmd.Wait()
		close(d.ended)
	}()
	require.Contains(t, <-up, "node n1 at https://", d.logged())
	return d
}

func (d *devProcess) logged() string {
	text, err := os.ReadFile(d.log)
	require.NoError(d.t, err)
	return string(text)
}

// stop sends the signal and returns the exit code.
func (d *devProcess) stop(s syscall.Signal) int {
	require.NoError(d.t, d.cmd.Process.Signal(s))
	select {
	case <-d.ended:
	case <-time.After(time.Minute):
		d.t.Fatal("dev did not stop: ", d.logged())
	}
	return d.cmd.ProcessState.ExitCode()
}

// TestDev is a day of one node: it starts, is used, refuses company, stops, and has kept everything.
func TestDev(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	https, agent, client := freePort(t), freePort(t), freePort(t)
	d := startDev(t, dir, https, agent, client)
	kubeconfig := "--kubeconfig=" + filepath.Join(dir, adminKubeconfig)

	out, errOut, code := run("kubectl", kubeconfig, "get", "--raw", "/readyz")
	require.Equal(t, "ok0", out+fmt.Sprint(code), errOut)
	out, errOut, code = run("kubectl", kubeconfig, "wait", "--for=condition=Ready", "--for=create", "node/n1", "--timeout=30s")
	require.Zero(t, code, out+errOut)
	_, errOut, code = run("kubectl", kubeconfig, "create", "configmap", "kept")
	require.Zero(t, code, errOut)
	out, errOut, code = run("store", "status", "--data-dir", dir)
	require.Zero(t, code, errOut)
	require.Contains(t, out, "Leader")
	lookIntoStore(t, dir)
	useStore(t, dir, client)

	_, errOut, code = run("dev", "--data-dir", dir, "--https-port", freePort(t), "--node-runtime", "simulated")
	require.Equal(t, 1, code)
	require.Equal(t, fmt.Sprintf("kontiki: data directory %s is in use by another kontiki (process %d)\n", dir, d.cmd.Process.Pid), errOut)
	_, errOut, code = run("dev", "--data-dir", t.TempDir(), "--bind-address", "127.0.0.1", "--https-port", https, "--node-runtime", "simulated")
	require.Equal(t, 1, code)
	require.Equal(t, fmt.Sprintf("kontiki: port %s is in use: stop what listens there or choose another with --https-port\n", https), errOut)

	require.Zero(t, d.stop(syscall.SIGTERM), d.logged())
	_, errOut, code = run("store", "status", "--data-dir", dir)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "no kontiki is running")

	d = startDev(t, dir, https, agent, client)
	out, errOut, code = run("kubectl", kubeconfig, "get", "configmap", "kept", "-o", "name")
	require.Equal(t, "configmap/kept\n", out, errOut)
	require.Zero(t, code)
	require.Zero(t, d.stop(syscall.SIGINT), d.logged())
}

// Who interrupts a start gets a clean stop, as later.
func TestStopDuringTheStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	cmd := program("dev", "--data-dir", dir, "--bind-address", "127.0.0.1", "--https-port", freePort(t),
		"--agent-port", freePort(t), "--client-port", "0", "--node-name", "n1", "--node-runtime", "simulated")
	var log bytes.Buffer
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "store"))
		return err == nil
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), log.String())
}

func TestDamagedKeysEndTheStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := startDev(t, dir, freePort(t), freePort(t), "0")
	require.Zero(t, d.stop(syscall.SIGTERM), d.logged())
	require.NoError(t, os.Truncate(filepath.Join(dir, "pki", "ca.crt"), 100))
	_, errOut, code := run("dev", "--data-dir", dir, "--https-port", freePort(t), "--node-runtime", "simulated")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, filepath.Join(dir, "pki", "ca.crt")+": damaged")
	require.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
}

func TestExitCodes(t *testing.T) {
	for args, want := range map[string]int{
		"version":                     0,
		"--help":                      0,
		"nonsense":                    2,
		"lab":                         0,
		"lab nonsense":                2,
		"certs rotate nonsense":       2,
		"agent --https-port 7443":     2,
		"server --nonsense":           2,
		"server --https-port 70000":   2,
		"agent --server http://x":     2,
		"agent --pki-dir /nowhere":    2,
		"image pull":                  2,
		"image list --data-dir /none": 1,
		"ctr ps --runtime /no/scheme": 2,
		"kubectl version --client":    0,
	} {
		_, errOut, code := run(strings.Fields(args)...)
		require.Equal(t, want, code, "%s: %s", args, errOut)
		require.LessOrEqual(t, strings.Count(errOut, "\n"), 1, errOut)
	}
}

// useStore does what etcdctl does with the variables of `store env`.
func useStore(t *testing.T, dir, port string) {
	out, errOut, code := run("store", "env", "--data-dir", dir)
	require.Zero(t, code, errOut)
	env := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		env[name] = strings.Trim(value, "'")
	}
	require.Equal(t, "https://127.0.0.1:"+port, env["ETCDCTL_ENDPOINTS"])
	trusted, err := transport.TLSInfo{
		TrustedCAFile: env["ETCDCTL_CACERT"], CertFile: env["ETCDCTL_CERT"], KeyFile: env["ETCDCTL_KEY"],
	}.ClientConfig()
	require.NoError(t, err)
	for _, c := range []struct {
		tls *tls.Config
		ok  bool
	}{{trusted, true}, {&tls.Config{RootCAs: trusted.RootCAs, MinVersion: tls.VersionTLS12}, false}} {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{env["ETCDCTL_ENDPOINTS"]}, TLS: c.tls, Logger: zap.NewNop()})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		res, err := client.Get(ctx, "/registry/namespaces/default")
		if c.ok {
			require.NoError(t, err)
			require.Len(t, res.Kvs, 1)
			require.True(t, strings.HasPrefix(string(res.Kvs[0].Value), "k8s\x00"))
		} else {
			require.Error(t, err, "nobody gets in without a certificate")
		}
		cancel()
		require.NoError(t, client.Close())
	}
}
