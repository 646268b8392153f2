package runtime_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"
)

// executor streams over SPDY, which is what CRI's streaming library serves in full: its
// WebSocket side ends at protocol v4, without the closing of stdin. API servers translate.
func executor(t *testing.T, address string) remotecommand.Executor {
	u, err := url.Parse(address)
	require.NoError(t, err)
	e, err := remotecommand.NewSPDYExecutor(&rest.Config{}, "POST", u)
	require.NoError(t, err)
	return e
}

// stream executes a program in a container.
func (h *host) stream(id string, opts remotecommand.StreamOptions, cmd ...string) error {
	resp, err := h.client.Exec(h.t.Context(), &runtimeapi.ExecRequest{
		ContainerId: id, Cmd: cmd, Tty: opts.Tty,
		Stdin: opts.Stdin != nil, Stdout: opts.Stdout != nil, Stderr: opts.Stderr != nil,
	})
	require.NoError(h.t, err)
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	return executor(h.t, resp.Url).StreamWithContext(ctx, opts)
}

func TestExecStreams_ND11(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("exec"))
	id := p.start(containerConfig("main", "serve"))
	input := make([]byte, 20<<20)
	_, err := rand.Read(input)
	require.NoError(t, err)
	sum := sha256.Sum256(input)
	var out, errOut bytes.Buffer
	require.NoError(t, h.stream(id, remotecommand.StreamOptions{Stdin: bytes.NewReader(input), Stdout: &out, Stderr: &errOut}, "/hello", "sha256"))
	require.Contains(t, out.String(), hex.EncodeToString(sum[:]), "ends on end of input, byte-exact")
	out.Reset()
	require.NoError(t, h.stream(id, remotecommand.StreamOptions{Stdin: strings.NewReader("foo\n"), Stdout: &out}, "/hello", "upper"))
	require.Equal(t, "FOO\n", out.String())
	out.Reset()
	require.NoError(t, h.stream(id, remotecommand.StreamOptions{Stdout: &out, Stderr: io.Discard}, "/hello", "lines", "50000", "100"))
	require.Equal(t, 50000, strings.Count(out.String(), "\n"))
	for _, code := range []int{3, 137} {
		err := h.stream(id, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}, "/hello", "exit", fmt.Sprint(code))
		var exit utilexec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, code, exit.ExitStatus())
	}
	require.ErrorContains(t, h.stream(id, remotecommand.StreamOptions{Stdout: io.Discard}, "/no/such/program"), "/no/such/program")
	stdin, typed := io.Pipe() // the client keeps its input open: the end of the program is enough
	defer typed.Close()
	require.NoError(t, h.stream(id, remotecommand.StreamOptions{Stdin: stdin, Stdout: io.Discard}, "/hello", "echo", "x"))
}

// sizes is a terminal that is resized once.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, ok := <-s
	if !ok {
		return nil
	}
	return &size
}

func TestExecTerminal_ND11(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("tty"))
	id := p.start(containerConfig("main", "serve"))
	stdin, typed := io.Pipe()
	shown := &syncBuffer{}
	size := make(sizes, 1)
	size <- remotecommand.TerminalSize{Width: 123, Height: 45}
	done := make(chan error, 1)
	go func() {
		done <- h.stream(id, remotecommand.StreamOptions{Stdin: stdin, Stdout: shown, Tty: true, TerminalSizeQueue: size}, "/hello", "upper")
	}()
	_, err := typed.Write([]byte("word\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(shown.String(), "WORD") }, time.Minute, 5*time.Millisecond)
	require.Contains(t, shown.String(), "word\r\n", "the terminal echoes")
	var pid int
	require.Eventually(t, func() bool { pid = processNamed(h.pid(id), "upper"); return pid != 0 }, time.Minute, 5*time.Millisecond)
	require.Eventually(t, func() bool {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/0", pid), os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		return err == nil && w.Col == 123 && w.Row == 45
	}, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, typed.Close())
	require.NoError(t, <-done)
	close(size)
}

// processNamed finds a process with the argument arg in the PID namespace of process pid.
func processNamed(pid int, arg string) int {
	ns, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		theirs, err := os.Readlink("/proc/" + e.Name() + "/ns/pid")
		if err != nil || theirs != ns {
			continue
		}
		cmdline, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if strings.Contains(string(cmdline), "\x00"+arg) {
			var n int
			_, _ = fmt.Sscan(e.Name(), &n)
			return n
		}
	}
	return 0
}

func TestExecSync(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("sync"))
	id := p.start(containerConfig("main", "serve"))
	resp := h.exec(id, "echo", "hi")
	require.Equal(t, "hi\n", string(resp.Stdout))
	require.EqualValues(t, 0, resp.ExitCode)
	require.EqualValues(t, 7, h.exec(id, "exit", "7").ExitCode)
	require.NotEmpty(t, h.exec(id, "cat", "/none").Stderr)

	_, err := h.client.ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"/hello", "trap", "ignore"}, Timeout: 1})
	require.ErrorContains(t, err, "DeadlineExceeded")
	require.Eventually(t, func() bool { return processNamed(h.pid(id), "trap") == 0 }, time.Minute, 5*time.Millisecond, "the command is killed")
	_, err = h.client.ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"/none"}})
	require.ErrorContains(t, err, "/none")
	files, err := os.ReadDir(h.cfg.StateDir + "/containers/" + id)
	require.NoError(t, err)
	for _, f := range files {
		require.NotContains(t, f.Name(), "exec-", "no temporary file stays")
	}
}

func TestAttach(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("attach"))
	config := containerConfig("main", "upper")
	config.Stdin, config.StdinOnce = true, true
	id := p.start(config)
	resp, err := h.client.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Stderr: true})
	require.NoError(t, err)
	var out bytes.Buffer
	err = executor(t, resp.Url).StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("one\ntwo\n"), Stdout: &out, Stderr: io.Discard})
	require.NoError(t, err)
	require.Equal(t, "ONE\nTWO\n", out.String())
	require.EqualValues(t, 0, h.waitExit(id).ExitCode, "its input ended with the first attach")
	require.Equal(t, "ONE\nTWO\n", h.log(id), "what an attached client sees is logged too")

	terminal := containerConfig("terminal", "upper")
	terminal.Stdin, terminal.Tty = true, true
	id = p.start(terminal)
	resp, err = h.client.Attach(t.Context(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Tty: true})
	require.NoError(t, err)
	stdin, typed := io.Pipe()
	shown := &syncBuffer{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- executor(t, resp.Url).StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: shown, Tty: true})
	}()
	_, err = typed.Write([]byte("word\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(shown.String(), "WORD") }, time.Minute, 5*time.Millisecond)
	cancel()
	require.Error(t, <-done)
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, h.status(id).State, "leaving does not end it")
}

func TestPortForward(t *testing.T) {
	h := newHost(t)
	p := h.runPod(h.sandboxConfig("forward"))
	id := p.start(containerConfig("main", "serve", "127.0.0.1:8080"))
	require.Eventually(t, func() bool { return h.exec(id, "get", "http://127.0.0.1:8080/").ExitCode == 0 }, time.Minute, 20*time.Millisecond)
	resp, err := h.client.PortForward(t.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: p.id, Port: []int32{8080}})
	require.NoError(t, err)
	u, err := url.Parse(resp.Url)
	require.NoError(t, err)
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	require.NoError(t, err)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", u)
	stop, ready := make(chan struct{}), make(chan struct{})
	fw, err := portforward.New(dialer, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- fw.ForwardPorts() }()
	<-ready
	ports, err := fw.GetPorts()
	require.NoError(t, err)
	r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local))
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Equal(t, string(h.exec(id, "get", "http://127.0.0.1:8080/").Stdout), string(body))
	close(stop)
	require.NoError(t, <-done)
}
