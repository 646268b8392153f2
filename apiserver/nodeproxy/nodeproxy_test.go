package nodeproxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	remotecommandserver "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	utilexec "k8s.io/utils/exec"

	"kontiki/internal/lingering"
	"kontiki/internal/livetls"
)

// shell is a streaming runtime whose commands are: "cat", "exit N", "size" (prints the first terminal size).
type shell struct{}

func (shell) Exec(_ context.Context, _ string, cmd []string, in io.Reader, out, errOut io.WriteCloser, _ bool, resize <-chan remotecommandserver.TerminalSize) error {
	switch cmd[0] {
	case "cat":
		_, err := io.Copy(out, in)
		return err
	case "exit":
		fmt.Fprint(errOut, "leaving")
		code, _ := strconv.Atoi(cmd[1])
		return utilexec.CodeExitError{Err: fmt.Errorf("exit %d", code), Code: code}
	case "say": // as many bytes, and ends with 7; reads nothing
		size, _ := strconv.Atoi(cmd[1])
		_, _ = out.Write(bytes.Repeat([]byte("x"), size))
		return utilexec.CodeExitError{Err: errors.New("exit 7"), Code: 7}
	case "size":
		size := <-resize
		_, err := fmt.Fprintf(out, "%dx%d", size.Width, size.Height)
		return err
	}
	return fmt.Errorf("no such command %q", cmd[0])
}

func (s shell) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommandserver.TerminalSize) error {
	return s.Exec(ctx, id, []string{"cat"}, in, out, errOut, tty, resize)
}

// PortForward echoes, behind the number of the port.
func (shell) PortForward(_ context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	fmt.Fprintf(stream, "port %d:", port)
	_, err := io.Copy(stream, stream)
	return err
}

// agent answers as a node's agent does, with the CRI streaming server of Kubernetes behind it.
func agent(t *testing.T) http.Handler {
	cfg := streaming.DefaultConfig
	cfg.BaseURL = &url.URL{Scheme: "http", Host: "runtime", Path: "/"}
	server, err := streaming.NewServer(cfg, shell{})
	require.NoError(t, err)
	redirect := func(w http.ResponseWriter, r *http.Request, address string, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.URL, err = url.Parse(address)
		require.NoError(t, err)
		server.ServeHTTP(w, r)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/ns/p/main", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("uid") != "u" {
			http.Error(w, "wrong pod", http.StatusNotFound)
			return
		}
		resp, err := server.GetExec(&runtimeapi.ExecRequest{ContainerId: "c", Cmd: q["command"], Tty: q.Get("tty") == "1",
			Stdin: q.Get("input") == "1", Stdout: q.Get("output") == "1", Stderr: q.Get("error") == "1"})
		redirect(w, r, resp.GetUrl(), err)
	})
	mux.HandleFunc("/portForward/ns/p", func(w http.ResponseWriter, r *http.Request) {
		resp, err := server.GetPortForward(&runtimeapi.PortForwardRequest{PodSandboxId: "s"})
		redirect(w, r, resp.GetUrl(), err)
	})
	mux.HandleFunc("/containerLogs/ns/p/main", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("previous") == "true" {
			http.Error(w, `previous terminated container "main" in pod "p" not found`, http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "tail=%s follow=%s", r.URL.Query().Get("tailLines"), r.URL.Query().Get("follow"))
	})
	return mux
}

// world is an API server that knows one pod, behind TLS, and how to reach it.
type world struct {
	pod    *corev1.Pod
	node   *corev1.Node
	config *rest.Config
}

func start(t *testing.T) *world {
	t.Helper()
	node := httptest.NewUnstartedServer(agent(t))
	node.Listener = lingering.Listen(node.Listener) // as agents have it
	node.StartTLS()
	t.Cleanup(node.Close)
	host, portText, err := net.SplitHostPort(node.Listener.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(portText)
	require.NoError(t, err)
	w := &world{
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
			Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main"}}}},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}}}},
	}
	roots := x509.NewCertPool()
	roots.AddCert(node.Certificate())
	proxy := New(Config{TLS: livetls.Static(&tls.Config{RootCAs: roots})})
	t.Cleanup(proxy.Close)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		err := proxy.Pod(rw, r, w.pod, w.node, strings.TrimPrefix(r.URL.Path, "/"), "p", "")
		if err != nil {
			status := apierrors.ReasonForError(err)
			http.Error(rw, string(status)+": "+err.Error(), http.StatusBadRequest)
		}
	}))
	server.Listener = lingering.Listen(server.Listener) // as the API server has it
	server.StartTLS()
	t.Cleanup(server.Close)
	w.config = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	return w
}

func (w *world) url(t *testing.T, path string) *url.URL {
	u, err := url.Parse(w.config.Host + path)
	require.NoError(t, err)
	return u
}

// executors are the protocols that kubectl speaks: WebSocket since 1.31, SPDY before.
func (w *world) executors(t *testing.T, path string) map[string]remotecommand.Executor {
	ws, err := remotecommand.NewWebSocketExecutor(w.config, http.MethodGet, w.url(t, path).String())
	require.NoError(t, err)
	sp, err := remotecommand.NewSPDYExecutor(w.config, http.MethodPost, w.url(t, path))
	require.NoError(t, err)
	return map[string]remotecommand.Executor{"websocket": ws, "spdy": sp}
}

func TestExecStreams_ND11(t *testing.T) {
	w := start(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for name, e := range w.executors(t, "/exec?stdin=true&stdout=true&command=cat") {
		var out bytes.Buffer
		require.NoError(t, e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: bytes.NewReader(big), Stdout: &out}), name)
		require.True(t, bytes.Equal(big, out.Bytes()), name)
	}
	for name, e := range w.executors(t, "/exec?stdout=true&stderr=true&command=exit&command=3") {
		var out, errOut bytes.Buffer
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
		var code exec.CodeExitError
		require.ErrorAs(t, err, &code, name)
		require.Equal(t, 3, code.Code, name)
		require.Equal(t, "leaving", errOut.String(), name)
	}
}

// oneSize is a terminal that is never resized.
type oneSize struct {
	sizes chan remotecommand.TerminalSize
}

func (q oneSize) Next() *remotecommand.TerminalSize {
	if s, ok := <-q.sizes; ok {
		return &s
	}
	return nil
}

func TestTerminalSize(t *testing.T) {
	w := start(t)
	for name, e := range w.executors(t, "/exec?stdin=true&stdout=true&tty=true&command=size") {
		q := oneSize{make(chan remotecommand.TerminalSize, 1)}
		q.sizes <- remotecommand.TerminalSize{Width: 80, Height: 24}
		var out bytes.Buffer
		require.NoError(t, e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader(""), Stdout: &out, Tty: true, TerminalSizeQueue: q}), name)
		close(q.sizes)
		require.Equal(t, "80x24", out.String(), name)
	}
}

func TestPortForward(t *testing.T) {
	w := start(t)
	u := w.url(t, "/portforward")
	ws, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, w.config)
	require.NoError(t, err)
	rt, upgrader, err := spdy.RoundTripperFor(w.config)
	require.NoError(t, err)
	sp := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: rt}, http.MethodPost, u)
	for name, dialer := range map[string]httpstream.Dialer{"websocket": ws, "spdy": sp} {
		stop, ready := make(chan struct{}), make(chan struct{})
		fw, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{":8080"}, stop, ready, io.Discard, io.Discard)
		require.NoError(t, err, name)
		done := make(chan error, 1)
		go func() { done <- fw.ForwardPorts() }()
		select {
		case <-ready:
		case err := <-done:
			require.FailNow(t, "not forwarded", "%s: %v", name, err)
		}
		ports, err := fw.GetPorts()
		require.NoError(t, err)
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local), 5*time.Second)
		require.NoError(t, err)
		_, err = io.WriteString(conn, "hello")
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "port 8080:hello", string(got), name)
		conn.Close()
		close(stop)
		require.NoError(t, <-done, name)
	}
}

func TestLogs(t *testing.T) {
	w := start(t)
	client, err := rest.HTTPClientFor(w.config)
	require.NoError(t, err)
	get := func(query string) string {
		resp, err := client.Get(w.config.Host + "/log?" + query)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return strings.TrimSpace(string(body))
	}
	require.Equal(t, "tail=5 follow=true", get("tailLines=5&follow=true"))
	require.Equal(t, `BadRequest: previous terminated container "main" in pod "p" not found`, get("previous=true"))
	require.Equal(t, "BadRequest: container x is not valid for pod p", get("container=x"))
	require.Contains(t, get("tailLines=-1"), "Invalid: PodLogOptions")
	require.Contains(t, get("sinceSeconds=0"), "must be greater than 0")
	require.Contains(t, get("sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z"), "at most one of")
	w.pod.Spec.NodeName = ""
	require.Empty(t, get(""))
}

func TestRefusals(t *testing.T) {
	w := start(t)
	for path, want := range map[string]string{
		"/exec?command=x":                         "you must specify at least 1 of stdin, stdout, stderr",
		"/exec?stdout=true":                       "you must specify a command to execute",
		"/exec?stdout=true&command=x&container=y": "container y is not valid for pod p",
		"/exec?stdout=true&command=x":             "Upgrade request required",
	} {
		client, err := rest.HTTPClientFor(w.config)
		require.NoError(t, err)
		resp, err := client.Get(w.config.Host + path)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, "BadRequest: "+want, strings.TrimSpace(string(body)))
	}
	w.pod.UID = "other"
	for name, e := range w.executors(t, "/exec?stdout=true&command=cat") {
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		require.ErrorContains(t, err, "wrong pod", name)
	}
	w.pod.Spec.NodeName = ""
	e := w.executors(t, "/exec?stdout=true&command=cat")["spdy"]
	require.ErrorContains(t, e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}), "does not have a host assigned")
}

func TestContainerNames(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}, InitContainers: []corev1.Container{{Name: "i"}}}}
	_, err := container(pod, "")
	require.EqualError(t, err, "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]")
	name, err := container(pod, "i")
	require.NoError(t, err)
	require.Equal(t, "i", name)
}

func TestMayReach(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "name"} {
		require.Error(t, mayReach(address), address)
	}
	require.NoError(t, mayReach("10.244.0.5"))
}
