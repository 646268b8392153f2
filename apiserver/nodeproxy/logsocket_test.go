package nodeproxy

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

func dialSocket(url string, protocols ...string) (*websocket.Conn, *http.Response, error) {
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Subprotocols: protocols, HandshakeTimeout: time.Minute}
	return dialer.Dial("ws"+strings.TrimPrefix(url, "http"), nil)
}

// TestLogsOverWebSocket: a log comes in messages, after an empty one, in the protocol that the client has asked for, and ends with
// a close frame. What is wrong is told before the connection is a WebSocket.
func TestLogsOverWebSocket(t *testing.T) {
	w := start(t)
	for _, c := range []struct {
		offered []string
		spoken  string
		kind    int
	}{
		{nil, "", websocket.BinaryMessage},
		{[]string{binaryProtocol}, binaryProtocol, websocket.BinaryMessage},
		{[]string{bearerProtocol + "eA", base64Protocol}, base64Protocol, websocket.TextMessage},
	} {
		conn, _, err := dialSocket(w.config.Host+"/log?tailLines=5", c.offered...)
		require.NoError(t, err)
		defer conn.Close()
		require.Equal(t, c.spoken, conn.Subprotocol())
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		kind, message, err := conn.ReadMessage()
		require.NoError(t, err)
		require.Equal(t, c.kind, kind)
		require.Empty(t, message)
		var said []byte
		for {
			kind, message, err = conn.ReadMessage()
			if err != nil {
				break
			}
			require.Equal(t, c.kind, kind)
			if kind == websocket.TextMessage {
				message, err = base64.StdEncoding.DecodeString(string(message))
				require.NoError(t, err)
			}
			said = append(said, message...)
		}
		require.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure), err)
		require.Equal(t, "tail=5 follow=", string(said))
	}
	for query, protocols := range map[string][]string{"": {"channel.k8s.io"}, "?previous=true": {binaryProtocol}} {
		_, response, err := dialSocket(w.config.Host+"/log"+query, protocols...)
		require.ErrorIs(t, err, websocket.ErrBadHandshake)
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
	}
}

// TestLogSocketEndsWithItsClient: a log that is followed ends when the client has gone, although nothing more is said.
func TestLogSocketEndsWithItsClient(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		body, said := io.Pipe()
		sendSocket(w, r, body, func() { _ = said.CloseWithError(errors.New("the client has gone")) })
	}))
	t.Cleanup(server.Close)
	conn, _, err := dialSocket(server.URL)
	require.NoError(t, err)
	_, _, err = conn.ReadMessage()
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}
