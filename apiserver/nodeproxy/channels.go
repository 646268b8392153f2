package nodeproxy

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	constants "k8s.io/apimachinery/pkg/util/remotecommand"
)

// The WebSocket protocol v5.channel.k8s.io. Every binary message begins with the number of its channel:
//
//	0 stdin →   1 stdout ←   2 stderr ←   3 status ← (JSON, once, at the end)   4 terminal size → (JSON)
//
// A message 255, N from the client closes channel N: the end of stdin, which older versions cannot tell.
const (
	readChannels  = 5
	closeTimeout  = time.Second // a client that does not read its close frame is not waited for longer
	maxChannelMsg = 1 << 20     // clients send 32 KiB at a time
)

// channels is one client's connection. Writes may come from several goroutines; each read channel has one reader.
type channels struct {
	ws    *websocket.Conn
	write sync.Mutex // guards writing to ws
	in    [readChannels]*io.PipeReader
	out   [readChannels]*io.PipeWriter
}

// openChannels accepts the client's WebSocket. When it fails the client has been answered.
func openChannels(w http.ResponseWriter, r *http.Request) (*channels, error) {
	upgrader := websocket.Upgrader{
		CheckOrigin:  func(*http.Request) bool { return true }, // no cookies here: a certificate or token has let the client in
		Subprotocols: []string{constants.StreamProtocolV5Name},
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxChannelMsg)
	c := &channels{ws: ws}
	for i := range c.in {
		c.in[i], c.out[i] = io.Pipe()
	}
	return c, nil
}

// receive hands the client's messages to the readers of their channels until the connection ends, which ends all
// readers. A reader that does not read holds up the client: that is its back-pressure.
func (c *channels) receive() {
	defer func() {
		for _, p := range c.out {
			p.Close()
		}
	}()
	for {
		_, message, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		switch {
		case len(message) == 2 && message[0] == constants.StreamClose && message[1] < readChannels:
			c.out[message[1]].Close()
		case len(message) > 1 && message[0] < readChannels:
			_, _ = c.out[message[0]].Write(message[1:]) // nobody reads it any more: dropped
		}
	}
}

// reader returns a channel that the client writes to.
func (c *channels) reader(number int) io.Reader { return c.in[number] }

// ignore drops what the client sends on a channel.
func (c *channels) ignore(number int) { c.in[number].Close() }

// writer returns a channel that the client reads.
func (c *channels) writer(number byte) io.Writer { return channelWriter{c, number} }

type channelWriter struct {
	*channels
	number byte
}

// Write implements io.Writer: one message.
func (w channelWriter) Write(p []byte) (int, error) {
	w.write.Lock()
	defer w.write.Unlock()
	message, err := w.ws.NextWriter(websocket.BinaryMessage)
	if err != nil {
		return 0, err
	}
	if _, err := message.Write([]byte{w.number}); err != nil {
		return 0, err
	}
	n, err := message.Write(p)
	if err != nil {
		return n, err
	}
	return n, message.Close()
}

// close says goodbye and ends the connection.
func (c *channels) close() {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.ws.WriteControl(websocket.CloseMessage, bye, time.Now().Add(closeTimeout)) // the client may have gone first
	c.ws.Close()
	for _, p := range c.out {
		p.Close() // readers see an end, and receive is not held up
	}
}
