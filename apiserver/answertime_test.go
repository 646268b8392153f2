package apiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"k8s.io/client-go/rest"

	"kontiki/apiserver"
	"kontiki/internal/pki"
)

// A client that asks for much and reads nothing loses its connection or stream when its time is up, and
// its place among the requests in flight is free again. One that was served in time keeps the connection.
func TestClientThatDoesNotRead(t *testing.T) {
	const answerTime = 300 * time.Millisecond
	dir := t.TempDir()
	keys, err := pki.Open(dir+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	config, stop := serve(t, dir, keys, apiserver.Config{AnswerTime: answerTime})
	defer stop()
	config.QPS, config.DisableCompression = -1, true
	reader := clientFor(t, config)
	const path = "/api/v1/namespaces/default/configmaps"
	for i := range 24 { // more than the buffers of two sockets hold
		reader.post(path, fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"a":%q}}`, i, strings.Repeat("x", 1<<20-1000))).ok()
	}
	for _, protocol := range []string{"http/1.1", "h2"} {
		config := rest.CopyConfig(config)
		config.NextProtos = []string{protocol}
		idle := clientFor(t, config)
		began := time.Now()
		idle.get(path + "/c1").ok()

		resp, err := clientFor(t, config).http.Get(config.Host + path)
		require.NoError(t, err)
		require.EqualValues(t, 1, inFlight(reader), protocol)
		require.Eventually(t, func() bool { return inFlight(reader) == 0 }, 10*time.Second, 20*time.Millisecond, protocol)
		_, err = io.Copy(io.Discard, resp.Body)
		require.Error(t, err, "the answer was cut off")
		require.NoError(t, resp.Body.Close())

		require.Greater(t, time.Since(began), answerTime)
		idle.get(path + "/c1").ok()
	}
}

// inFlight is how many reads the server is answering.
func inFlight(c *client) int {
	n := 0
	for line := range strings.Lines(string(c.get("/metrics").ok().body)) {
		_, _ = fmt.Sscanf(line, `apiserver_current_inflight_requests{request_kind="readOnly"} %d`, &n)
	}
	return n
}

// Methods are the client's to make up: they must not become labels, each of which is kept for ever.
func TestUnknownMethodsMakeNoMetrics(t *testing.T) {
	_, c := start(t)
	c.do("FROBNICATE", "/api/v1/pods", "").fails(http.StatusMethodNotAllowed, "MethodNotAllowed", "")
	metrics := string(c.get("/metrics").ok().body)
	require.NotContains(t, metrics, "FROBNICATE")
	require.Contains(t, metrics, `verb="other"`)
}
