package apiserver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// A watchSocket carries a watch over a WebSocket (RFC 6455), for browsers, which cannot read a response while it lasts. Each event
// is a message: text if it is JSON, else binary and without the length that frames of a stream begin with. What the client
// sends is read and dropped.
type watchSocket struct {
	conn *websocket.Conn
	kind int // of its messages
}

const (
	maxSocketRead = 4 << 10          // of a client that has nothing to say
	socketGoodbye = 10 * time.Second // how long a close frame may take
)

// openSocket accepts the client's WebSocket, with the first subprotocol that it offers. When it fails the client has been answered.
func openSocket(w http.ResponseWriter, r *http.Request, text bool) (*watchSocket, error) {
	sendWarnings(r.Context(), w.Header())
	upgrader := websocket.Upgrader{
		HandshakeTimeout: headerTimeout,
		CheckOrigin:      func(*http.Request) bool { return true }, // no cookies here: a certificate or token has let the client in
		Subprotocols: slices.DeleteFunc(websocket.Subprotocols(r), func(name string) bool {
			return strings.HasPrefix(name, bearerProtocol)
		}),
	}
	conn, err := upgrader.Upgrade(w, r, w.Header())
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxSocketRead)
	s := &watchSocket{conn: conn, kind: websocket.BinaryMessage}
	if text {
		s.kind = websocket.TextMessage
	}
	return s, nil
}

// hangUp reads until the client closes the connection, and ends the watch then. done is closed when it no longer reads.
func (s *watchSocket) hangUp(end context.CancelFunc) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer end()
		for {
			if _, _, err := s.conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
	return ended
}

func (s *watchSocket) send(message []byte) error {
	if s.conn.WriteMessage(s.kind, message) != nil {
		return errClientGone
	}
	return nil
}

// close says good-bye, closes the connection, and waits for its reader.
func (s *watchSocket) close(done <-chan struct{}) {
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(socketGoodbye))
	_ = s.conn.Close()
	<-done
}
