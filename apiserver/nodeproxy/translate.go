package nodeproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	constants "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/remotecommand"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// pingPeriod keeps the connection to the agent from looking dead to what is between.
const pingPeriod = 5 * time.Second

// translate speaks the WebSocket protocol v5.channel.k8s.io with the client and SPDY with the agent. How the command
// ended goes to the client on the status channel.
func (p *Proxy) translate(w http.ResponseWriter, r *http.Request, location *url.URL, wanted streams) error {
	executor, err := p.executor(location)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	client, err := openChannels(w, r)
	if err != nil {
		p.log.Debug("WebSocket could not be opened", "err", err) // the library has answered
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer client.close()
	defer cancel()
	wg.Go(func() { defer cancel(); client.receive() }) // a client that goes away ends the command's streams
	data, err := json.Marshal(outcome(executor.StreamWithContext(ctx, options(ctx, &wg, client, wanted))))
	if err != nil {
		return nil
	}
	_, _ = client.writer(constants.StreamErr).Write(data) // a client that has left needs no status
	return nil
}

// options connects the channels with the streams of the command.
func options(ctx context.Context, wg *sync.WaitGroup, client *channels, wanted streams) remotecommand.StreamOptions {
	o := remotecommand.StreamOptions{Tty: wanted.tty}
	if wanted.stdin {
		o.Stdin = client.reader(constants.StreamStdIn)
	} else {
		client.ignore(constants.StreamStdIn)
	}
	if wanted.stdout {
		o.Stdout = client.writer(constants.StreamStdOut)
	}
	if wanted.stderr {
		o.Stderr = client.writer(constants.StreamStdErr)
	}
	if !wanted.tty {
		client.ignore(constants.StreamResize)
		return o
	}
	q := sizes{ctx, make(chan remotecommand.TerminalSize)}
	wg.Go(func() { q.read(client.reader(constants.StreamResize)) })
	o.TerminalSizeQueue = q
	return o
}

// executor runs commands on the agent over SPDY.
func (p *Proxy) executor(location *url.URL) (remotecommand.Executor, error) {
	rt, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{UpgradeTransport: p.agent.Current(), PingPeriod: pingPeriod})
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorRejectRedirects(rt, clientspdy.NewUpgraderForStreaming(rt), http.MethodPost, location)
}

// sizes is a remotecommand.TerminalSizeQueue, fed by the client's terminal size channel.
type sizes struct {
	ctx context.Context // of the command: the queue ends with it
	ch  chan remotecommand.TerminalSize
}

// Next implements remotecommand.TerminalSizeQueue.
func (s sizes) Next() *remotecommand.TerminalSize {
	select {
	case size := <-s.ch:
		return &size
	case <-s.ctx.Done():
		return nil
	}
}

// read queues sizes until the channel or the command ends.
func (s sizes) read(channel io.Reader) {
	decoder := json.NewDecoder(channel)
	for {
		var size remotecommand.TerminalSize
		if decoder.Decode(&size) != nil {
			return
		}
		select {
		case s.ch <- size:
		case <-s.ctx.Done():
			return
		}
	}
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
