package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// dial opens a WebSocket, as a browser does.
func dial(t *testing.T, config *rest.Config, path string, header http.Header, protocols ...string) *websocket.Conn {
	t.Helper()
	secured, err := rest.TLSConfigFor(config)
	require.NoError(t, err)
	secured.NextProtos = []string{"http/1.1"}
	dialer := websocket.Dialer{TLSClientConfig: secured.Clone(), Subprotocols: protocols, HandshakeTimeout: frameTimeout}
	conn, response, err := dialer.DialContext(t.Context(), strings.Replace(config.Host, "https://", "wss://", 1)+path, header)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(frameTimeout)))
	return conn
}

// A watch over WebSocket: each event is a message, text for JSON, binary for the other formats; the end is a close frame.
func TestWatchOverWebSocket(t *testing.T) {
	cluster := testcluster.Start(t)
	config := cluster.REST(pki.Admin)
	c := clientFor(t, config)
	path := maps + "?watch=1&resourceVersion=" + c.get(maps).resourceVersion()
	text := dial(t, config, path, nil, "base64url.bearer.authorization.k8s.io.c2VjcmV0", "binary.k8s.io")
	require.Equal(t, "binary.k8s.io", text.Subprotocol(), "never the one with the token")
	protobuf := dial(t, config, path, http.Header{"Accept": {"application/vnd.kubernetes.protobuf"}})
	cbor := dial(t, config, path, http.Header{"Accept": {"application/cbor-seq"}})
	c.post(maps, configMap("c", "")).ok()

	kind, message, err := text.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, websocket.TextMessage, kind)
	var seen frame
	require.NoError(t, json.Unmarshal(message, &struct {
		Type   *string
		Object any
	}{&seen.Type, &seen.Object.Object}))
	require.Equal(t, "ADDED:c", seen.String())

	kind, message, err = protobuf.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, websocket.BinaryMessage, kind)
	var event metav1.WatchEvent
	require.NoError(t, event.Unmarshal(message), "without a length")
	require.Equal(t, "ADDED", event.Type)

	kind, message, err = cbor.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, websocket.BinaryMessage, kind)
	var decoded map[string]any
	require.NoError(t, direct.Unmarshal(message, &decoded))
	require.Equal(t, "ADDED", decoded["type"])

	brief := dial(t, config, path+"&timeoutSeconds=1", nil)
	for err = nil; err == nil; { // the event, if there was time for it
		_, _, err = brief.ReadMessage()
	}
	require.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure), "its time is up: %v", err)
}
