package nodeproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	constants "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/remotecommand"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// Bounds of a translated connection: how long it may be silent, how long its final status may take to be sent, and how
// often the agent is pinged (a SPDY connection of which nothing is heard is closed by middleboxes).
const (
	idleTimeout   = 4 * time.Hour
	statusTimeout = 10 * time.Second
	pingPeriod    = 5 * time.Second
)

// translate speaks the WebSocket protocol v5.channel.k8s.io with the client and SPDY with the agent. The exit status
// comes back on the error channel.
func (p *Proxy) translate(w http.ResponseWriter, r *http.Request, location *url.URL, wanted streams) error {
	executor, err := p.executor(location)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	channels, conn, err := openChannels(w, r, wanted)
	if err != nil {
		p.log.Debug("WebSocket could not be opened", "err", err) // the library has answered
		return nil
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	options := remotecommand.StreamOptions{Tty: wanted.tty}
	if wanted.stdin {
		options.Stdin = channels[constants.StreamStdIn]
	}
	if wanted.stdout {
		options.Stdout = channels[constants.StreamStdOut]
	}
	if wanted.stderr {
		options.Stderr = channels[constants.StreamStdErr]
	}
	if wanted.tty {
		options.TerminalSizeQueue = resizes(ctx, channels[constants.StreamResize])
	}
	data, err := json.Marshal(outcome(executor.StreamWithContext(ctx, options)))
	if err != nil {
		return nil
	}
	conn.SetWriteDeadline(statusTimeout)
	_, _ = channels[constants.StreamErr].Write(data) // a client that has left needs no status
	return nil
}

// executor runs commands on the agent over SPDY.
func (p *Proxy) executor(location *url.URL) (remotecommand.Executor, error) {
	rt, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{UpgradeTransport: p.agent, PingPeriod: pingPeriod})
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorRejectRedirects(rt, clientspdy.NewUpgraderForStreaming(rt), http.MethodPost, location)
}

// openChannels accepts the client's WebSocket, and writes an empty message so that the client knows.
func openChannels(w http.ResponseWriter, r *http.Request, wanted streams) ([]io.ReadWriteCloser, *wsstream.Conn, error) {
	kind := func(on bool, t wsstream.ChannelType) wsstream.ChannelType {
		if on {
			return t
		}
		return wsstream.IgnoreChannel
	}
	types := []wsstream.ChannelType{
		constants.StreamStdIn:  kind(wanted.stdin, wsstream.ReadChannel),
		constants.StreamStdOut: kind(wanted.stdout, wsstream.WriteChannel),
		constants.StreamStdErr: kind(wanted.stderr, wsstream.WriteChannel),
		constants.StreamErr:    wsstream.WriteChannel,
		constants.StreamResize: wsstream.ReadChannel,
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		constants.StreamProtocolV5Name: {Binary: true, Channels: types},
	})
	conn.SetIdleTimeout(idleTimeout)
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return nil, nil, err
	}
	first := constants.StreamErr
	switch {
	case wanted.stdout:
		first = constants.StreamStdOut
	case wanted.stderr:
		first = constants.StreamStdErr
	}
	if _, err := channels[first].Write([]byte{}); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return channels, conn, nil
}

// sizes is a remotecommand.TerminalSizeQueue.
type sizes struct {
	ctx context.Context // of the request: the queue ends with it
	ch  chan remotecommand.TerminalSize
}

// Next implements remotecommand.TerminalSizeQueue.
func (s sizes) Next() *remotecommand.TerminalSize {
	select {
	case size, ok := <-s.ch:
		if ok {
			return &size
		}
	case <-s.ctx.Done():
	}
	return nil
}

// resizes reads the client's terminal sizes. Its goroutine ends with the channel, which the WebSocket's end closes.
func resizes(ctx context.Context, channel io.Reader) sizes {
	q := sizes{ctx, make(chan remotecommand.TerminalSize)}
	go func() {
		defer close(q.ch)
		decoder := json.NewDecoder(channel)
		for {
			var size remotecommand.TerminalSize
			if decoder.Decode(&size) != nil {
				return
			}
			select {
			case q.ch <- size:
			case <-ctx.Done():
				return
			}
		}
	}()
	return q
}

// outcome is the status that ends a command: success, an exit code, or what went wrong.
func outcome(err error) metav1.Status {
	var exit exec.CodeExitError
	var status *apierrors.StatusError
	switch {
	case err == nil:
		return metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &exit) && exit.Exited():
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: constants.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: constants.ExitCodeCauseType, Message: fmt.Sprint(exit.ExitStatus())}}},
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", exit),
		}
	case errors.As(err, &status):
		return status.Status()
	}
	return apierrors.NewInternalError(err).Status()
}
