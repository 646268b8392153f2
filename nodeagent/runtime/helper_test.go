package runtime_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/runtime"
)

// child is a process with a runtime of its own, so that it can be killed.
type child struct {
	h    *host
	cmd  *exec.Cmd
	conn *grpc.ClientConn
}

// startChild moves the host's runtime into a child process and h's clients to its socket.
func (h *host) startChild() *child {
	require.NoError(h.t, h.r.Close())
	config := h.cfg
	config.Log = nil
	b, err := json.Marshal(config)
	require.NoError(h.t, err)
	socket := filepath.Join(h.t.TempDir(), "cri.sock")
	cmd := exec.Command(os.Args[0], "-test.run=^TestServeHelper$")
	cmd.Env = append(os.Environ(), "KONTIKI_HELPER_STATE="+string(b), "KONTIKI_HELPER_SOCKET="+socket)
	require.NoError(h.t, cmd.Start())
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(h.t, err)
	c := &child{h, cmd, conn}
	h.t.Cleanup(c.kill)
	h.client = runtimeapi.NewRuntimeServiceClient(conn)
	require.Eventually(h.t, func() bool {
		_, err := h.client.Version(h.t.Context(), &runtimeapi.VersionRequest{})
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	return c
}

// kill is kill -9.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	_ = c.conn.Close()
}

func serveHelper(t *testing.T) {
	var config runtime.Config
	require.NoError(t, json.Unmarshal([]byte(os.Getenv("KONTIKI_HELPER_STATE")), &config))
	r, err := runtime.New(config)
	require.NoError(t, err)
	require.NoError(t, r.ServeUnix(t.Context(), os.Getenv("KONTIKI_HELPER_SOCKET")))
}
