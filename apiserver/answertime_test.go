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
	fill(reader)
	for _, protocol := range []string{"http/1.1", "h2"} {
		config := rest.CopyConfig(config)
		config.NextProtos = []string{protocol}
		idle := clientFor(t, config)
		began := time.Now()
		idle.get(configMaps + "/c1").ok()
		require.Eventually(t, func() bool { return gauge(reader, readsInFlight) == 0 }, time.Minute, time.Millisecond, "the last answer is written")

		resp, err := clientFor(t, config).http.Get(config.Host + configMaps)
		require.NoError(t, err)
		require.Equal(t, 1, gauge(reader, readsInFlight), protocol)
		require.Eventually(t, func() bool { return gauge(reader, readsInFlight) == 0 }, 30*time.Second, 20*time.Millisecond, protocol)
		_, err = io.Copy(io.Discard, resp.Body)
		require.Error(t, err, "the answer was cut off")
		require.NoError(t, resp.Body.Close())

		require.Greater(t, time.Since(began), answerTime)
		idle.get(configMaps + "/c1").ok()
	}
}

// The same with a watch, which has all the time that it asked for, and then as much as an answer.
func TestWatcherThatDoesNotRead(t *testing.T) {
	dir := t.TempDir()
	keys, err := pki.Open(dir+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	config, stop := serve(t, dir, keys, apiserver.Config{AnswerTime: 300 * time.Millisecond})
	defer stop()
	config.QPS, config.DisableCompression = -1, true
	reader := clientFor(t, config)
	fill(reader)
	for _, protocol := range []string{"http/1.1", "h2"} {
		config := rest.CopyConfig(config)
		config.NextProtos = []string{protocol}
		resp, err := clientFor(t, config).http.Get(config.Host + configMaps + "?watch=1&resourceVersion=0&timeoutSeconds=1")
		require.NoError(t, err)
		require.Equal(t, 1, gauge(reader, longRunning), protocol)
		require.Eventually(t, func() bool { return gauge(reader, longRunning) == 0 }, 30*time.Second, 20*time.Millisecond, protocol)
		require.NoError(t, resp.Body.Close())
	}
}

const configMaps = "/api/v1/namespaces/default/configmaps"

// fill creates objects of more bytes together than the buffers of two sockets hold.
func fill(c *client) {
	for i := range 24 {
		c.post(configMaps, fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"a":%q}}`, i, strings.Repeat("x", 1<<20-1000))).ok()
	}
}

// Gauges of the server.
const (
	readsInFlight = `apiserver_current_inflight_requests{request_kind="readOnly"}`
	longRunning   = `apiserver_longrunning_requests`
)

func gauge(c *client, name string) (n int) {
	for line := range strings.Lines(string(c.get("/metrics").ok().body)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			_, _ = fmt.Sscan(value, &n)
		}
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
