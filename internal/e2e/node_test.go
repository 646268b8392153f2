package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// node is one `kontiki dev` process and where to reach it.
type node struct {
	dataDir    string
	httpsPort  int
	kubeconfig string
	extraArgs  []string
	wrapper    []string // a command that runs the node's

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been reaped
	log  *os.File
}

var (
	sharedOnce sync.Once
	sharedNode *node
	sharedErr  error
)

// shared returns the node that most tests use. It is started once and stopped by TestMain.
func shared(t testing.TB) *node {
	t.Helper()
	needCluster(t)
	sharedOnce.Do(func() {
		dir, err := os.MkdirTemp("", "kontiki-e2e-")
		if err != nil {
			sharedErr = err
			return
		}
		sharedNode = newNode(dir, 6443)
		if sharedErr = sharedNode.start(); sharedErr == nil {
			sharedErr = sharedNode.waitReady(60 * time.Second)
		}
	})
	if sharedErr != nil {
		t.Fatalf("shared node: %v\n%s", sharedErr, sharedNode.logTail())
	}
	return sharedNode
}

func stopShared() {
	if sharedNode == nil {
		return
	}
	sharedNode.stop()
	_ = os.RemoveAll(sharedNode.dataDir)
}

func newNode(dataDir string, httpsPort int, extraArgs ...string) *node {
	return &node{
		dataDir:    dataDir,
		httpsPort:  httpsPort,
		kubeconfig: filepath.Join(dataDir, "admin.kubeconfig"),
		extraArgs:  extraArgs,
	}
}

// start runs the process; its output goes to a file in the data directory's parent.
func (n *node) start() error {
	log, err := os.OpenFile(n.dataDir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	args := append([]string{"dev", "--data-dir", n.dataDir, "--node-ip", nodeIP,
		"--https-port", fmt.Sprint(n.httpsPort), "--client-port", "0", "--cgroup-root", cgroupRoot()}, n.extraArgs...)
	n.log = log
	argv := append(append(n.wrapper[:len(n.wrapper):len(n.wrapper)], filepath.Join(binDir, "kontiki")), args...)
	n.cmd = exec.Command(argv[0], argv[1:]...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		return err
	}
	n.done = make(chan struct{})
	go func() {
		_ = n.cmd.Wait()
		log.Close()
		close(n.done)
	}()
	return nil
}

// waitReady waits until /readyz answers 200 and the node object is Ready.
func (n *node) waitReady(limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		out, err := n.tryKubectl("get", "--raw", "/readyz")
		if err == nil && strings.TrimSpace(out) == "ok" {
			break
		}
		if err := n.pause(deadline); err != nil {
			return fmt.Errorf("not ready in %s: %w: %s", limit, err, out)
		}
	}
	for {
		out, err := n.tryKubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=5s")
		if err == nil {
			return nil
		}
		if err := n.pause(deadline); err != nil {
			return fmt.Errorf("node not Ready in %s: %w: %s", limit, err, out)
		}
	}
}

// pause waits a moment between two polls; it fails at the deadline or when the process has ended.
func (n *node) pause(deadline time.Time) error {
	if time.Now().After(deadline) {
		return context.DeadlineExceeded
	}
	select {
	case <-n.done:
		return fmt.Errorf("kontiki ended: %s", n.logTail())
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

// kill9 ends the process as a power cut would: nothing of it runs on.
func (n *node) kill9() {
	_ = n.cmd.Process.Kill()
	<-n.done
}

// stop ends the process as Ctrl-C does and waits for it, with a limit.
func (n *node) stop() {
	_ = n.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-n.done:
	case <-time.After(60 * time.Second):
		n.kill9()
	}
}

func (n *node) logTail() string {
	data, err := os.ReadFile(n.dataDir + ".log")
	if err != nil {
		return err.Error()
	}
	if len(data) > 4000 {
		data = data[len(data)-4000:]
	}
	return string(data)
}

func (n *node) restConfig(t testing.TB) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", n.kubeconfig)
	require.NoError(t, err)
	return config
}

// http returns a client that trusts the cluster CA and, if asked, presents the admin certificate.
func (n *node) http(t testing.TB, withCert bool) *http.Client {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(n.dataDir, "pki", "ca.crt"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca))
	config := &tls.Config{RootCAs: pool}
	if withCert {
		pair, err := tls.LoadX509KeyPair(filepath.Join(n.dataDir, "pki", "admin.crt"), filepath.Join(n.dataDir, "pki", "admin.key"))
		require.NoError(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

func (n *node) url(path string) string {
	return "https://" + net.JoinHostPort("127.0.0.1", fmt.Sprint(n.httpsPort)) + path
}

// do sends one request with the admin certificate and returns status code and body.
func (n *node) do(t *testing.T, method, path, contentType string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, n.url(path), bytes.NewReader(body))
	require.NoError(t, err)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := n.http(t, true).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(reply)
}
