package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runAsHello makes the test binary be the program: tests see exit codes and output as a container's
// parent does.
const runAsHello = "HELLO_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsHello) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func hello(input string, args ...string) (output string, code int) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), runAsHello+"=1")
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestHelpers(t *testing.T) {
	file := t.TempDir() + "/f"
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o600))
	cases := []struct {
		args   string
		input  string
		output string
		code   int
	}{
		{args: "echo one two", output: "one two\n"},
		{args: "exit 3", code: 3},
		{args: "exit 0"},
		{args: "sleep 1ms"},
		{args: "lines 2", output: "line 0 \nline 1 \n"},
		{args: "lines 1 10", output: "line 0 xx\n"},
		{args: "lines 2 0 1000 3", output: "line 0 \nline 1 \n", code: 3},
		{args: "partial abc", output: "abc"},
		{args: "sha256", input: "abc", output: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"},
		{args: "upper", input: "a\nb\n", output: "A\nB\n"},
		{args: "cat " + file, output: "content"},
		{args: "cat /does/not/exist", output: "hello: open /does/not/exist: no such file or directory\n", code: 1},
		{args: "exit many", output: "hello: usage: exit CODE                     end with CODE\n", code: 1},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			output, code := hello(c.input, strings.Fields(c.args)...)
			require.Equal(t, c.output, output)
			require.Equal(t, c.code, code)
		})
	}
	output, code := hello("", "nonsense")
	require.Equal(t, 2, code)
	require.Contains(t, output, "sha256")
}

func TestIntroduce(t *testing.T) {
	t.Setenv("POD_NAME", "p")
	t.Setenv("POD_NAMESPACE", "ns")
	t.Setenv("NODE_NAME", "n")
	t.Setenv("GREETING", "Ahoy!")
	w := httptest.NewRecorder()
	introduce(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, "Ahoy! I am pod p in namespace ns on node n.\n", w.Body.String())
}

// TestReach tries one of each kind, and one that does not answer.
func TestReach(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { tcp.Close() })
	go func() {
		for conn, err := tcp.Accept(); err == nil; conn, err = tcp.Accept() {
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	web := httptest.NewServer(http.HandlerFunc(introduce))
	t.Cleanup(web.Close)
	for target, answer := range map[string]string{
		"tcp://" + tcp.Addr().String(): "echoed 127.0.0.1:",
		web.URL + "/":                  "I am pod",
		"dns://127.0.0.1":              "127.0.0.1",
	} {
		said, err := reachOne(t.Context(), target)
		require.NoError(t, err, target)
		require.Contains(t, said, answer, target)
	}
	web.Close()
	output, code := hello("", "reach", "tcp://"+tcp.Addr().String(), web.URL, "ftp://x")
	require.Equal(t, 1, code)
	require.Equal(t, 2, strings.Count(output, "FAILED: "), output)
	require.Contains(t, output, " echoed ")
}

func TestAdmit(t *testing.T) {
	for labels, want := range map[string]string{
		`{}`:                 `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}}`,
		`{"deny":"because"}`: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":false,"status":{"message":"because"}}}`,
	} {
		asked := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":{"metadata":{"labels":` + labels + `}}}}`
		w := httptest.NewRecorder()
		answerReview(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(asked)))
		require.JSONEq(t, want, w.Body.String())
	}
	w := httptest.NewRecorder()
	answerReview(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	require.Equal(t, http.StatusBadRequest, w.Code)
}

func TestPauseEndsWithTheSignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, pause(ctx, time.Hour), terminated)
}
