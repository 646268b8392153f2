package gather

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer of every size, over each way that net/http and crypto/tls have to end one, is whole: the connection goes on or is
// closed by either side, carries HTTP/2, or is taken over by the handler.
func TestAnswersAreWhole(t *testing.T) {
	const rounds = 40
	sizes := []int{5, 4 << 10, 70 << 10, 1 << 20}
	for _, way := range []struct {
		name  string
		http2 bool
		path  string
		each  bool // a connection for each
	}{
		{"kept", false, "/", false}, {"kept by HTTP/2", true, "/", false}, {"each by HTTP/2", true, "/", true},
		{"closed by the client", false, "/", true}, {"closed by the server", false, "/close", false},
		{"taken over", false, "/takeover", false},
	} {
		t.Run(way.name, func(t *testing.T) {
			server := serve(t)
			client := clientOf(t, server, way.http2, way.each)
			for i := range rounds {
				size := sizes[i%len(sizes)]
				answer, err := client.Get(fmt.Sprintf("%s%s?size=%d", server.URL, way.path, size))
				require.NoError(t, err)
				body, err := io.ReadAll(answer.Body)
				require.NoError(t, err, "round %d, %d bytes", i, size)
				require.NoError(t, answer.Body.Close())
				require.Len(t, body, size, "round %d", i)
				if way.http2 && way.each {
					client.CloseIdleConnections()
				}
			}
		})
	}
}

func serve(t *testing.T) *httptest.Server {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := Listen(inner)
	server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	server.Listener, server.EnableHTTP2 = listener, true
	server.StartTLS()
	t.Cleanup(func() {
		server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		listener.Drain(ctx)
		require.NoError(t, ctx.Err())
	})
	return server
}

// answer sends as many bytes as are asked for, and ends the connection as the path says.
func answer(w http.ResponseWriter, r *http.Request) {
	var size int
	_, _ = fmt.Sscan(r.URL.Query().Get("size"), &size)
	body := bytes.Repeat([]byte("x"), size)
	switch r.URL.Path {
	case "/takeover":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", size)
		_, _ = conn.Write(body)
		return
	case "/close":
		w.Header().Set("Connection", "close")
	}
	for len(body) > 0 { // in many writes
		n, err := w.Write(body[:min(len(body), 3000)])
		if err != nil {
			return
		}
		body = body[n:]
	}
}

func clientOf(t *testing.T, s *httptest.Server, http2, each bool) *http.Client {
	transport := s.Client().Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = each && !http2
	if !http2 {
		transport.ForceAttemptHTTP2, transport.TLSClientConfig.NextProtos = false, []string{"http/1.1"}
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP1(true)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
