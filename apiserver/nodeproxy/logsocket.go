package nodeproxy

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The WebSocket protocols of one stream of bytes, for browsers: what is read is sent as it comes, in messages of bytes or of
// base64. A first empty message says that it has begun; what the client sends is dropped.
const (
	binaryProtocol = "binary.k8s.io"
	base64Protocol = "base64.binary.k8s.io"
	// bearerProtocol begins what carries a token, and is no protocol to speak.
	bearerProtocol = "base64url.bearer.authorization.k8s.io."

	maxSocketRead = 4 << 10 // of a client that has nothing to say
)

// checkLogProtocols refuses a WebSocket of whose protocols none is known.
func checkLogProtocols(r *http.Request) error {
	offered := slices.DeleteFunc(websocket.Subprotocols(r), func(name string) bool { return strings.HasPrefix(name, bearerProtocol) })
	if len(offered) > 0 && !slices.Contains(offered, binaryProtocol) && !slices.Contains(offered, base64Protocol) {
		return apierrors.NewBadRequest("none of the WebSocket protocols " + strings.Join(offered, ", ") + " is for logs: use " + binaryProtocol + " or " + base64Protocol)
	}
	return nil
}

// sendSocket answers with a WebSocket that has what body has, until either side is done. end ends body when the client has gone.
func sendSocket(w http.ResponseWriter, r *http.Request, body io.Reader, end context.CancelFunc) {
	upgrader := websocket.Upgrader{
		CheckOrigin:  func(*http.Request) bool { return true }, // no cookies here: a certificate or token has let the client in
		Subprotocols: []string{binaryProtocol, base64Protocol},
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the client has been answered
	}
	conn.SetReadLimit(maxSocketRead)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer end()
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
	copyMessages(conn, body)
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(closeTimeout)) // the client may have gone first
	_ = conn.Close()
	<-gone
}

// copyMessages sends what it reads, after an empty message.
func copyMessages(conn *websocket.Conn, body io.Reader) {
	send := func(data []byte) error { return conn.WriteMessage(websocket.BinaryMessage, data) }
	if conn.Subprotocol() == base64Protocol {
		send = func(data []byte) error {
			return conn.WriteMessage(websocket.TextMessage, []byte(base64.StdEncoding.EncodeToString(data)))
		}
	}
	err := send(nil)
	buf := make([]byte, 32<<10)
	for err == nil {
		var n int
		n, err = body.Read(buf)
		if n > 0 && send(buf[:n]) != nil {
			return
		}
	}
}
