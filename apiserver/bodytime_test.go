package apiserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Who needs longer than the request had for its body, and has it, is not taken for somebody whose client is gone, and
// neither are the next requests on the connection.
func TestBodyTimeEndsWithTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		client := servePipes(t, func(w http.ResponseWriter, r *http.Request) {
			boundBody(w, r, time.Second)
			_, err := io.Copy(io.Discard, r.Body)
			time.Sleep(time.Minute) // of the bubble
			fmt.Fprint(w, err, r.Context().Err())
		}, &connections)
		for _, body := range []string{"", "a body", ""} {
			resp, err := client.Post("http://pipe", "text/plain", strings.NewReader(body))
			require.NoError(t, err)
			answer, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, "<nil> <nil>", string(answer))
		}
		require.Equal(t, 1, connections)
	})
}

func TestABodyThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan error, 1)
		client := servePipes(t, func(w http.ResponseWriter, r *http.Request) {
			boundBody(w, r, time.Second)
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
		}, new(int))
		began := time.Now()
		never, end := io.Pipe()
		defer end.Close()
		go func() {
			if resp, err := client.Post("http://pipe", "text/plain", never); err == nil {
				_ = resp.Body.Close()
			}
		}()
		require.ErrorIs(t, <-read, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// servePipes serves HTTP/1 on connections in memory, which it counts.
func servePipes(t *testing.T, handler http.HandlerFunc, connections *int) *http.Client {
	listener := pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	dial := func(context.Context, string, string) (net.Conn, error) {
		*connections++
		near, far := net.Pipe()
		listener.conns <- far
		return near, nil
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return &http.Client{Transport: transport}
}

// pipes is a listener for connections that somebody in this process makes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
