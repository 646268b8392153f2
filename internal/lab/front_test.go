package lab

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// behind is a server that says whether it is ready, and its name.
func behind(t *testing.T, name string) (*server, *atomic.Bool) {
	ready := &atomic.Bool{}
	ready.Store(true)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(s.Close)
	return &server{name: name, address: s.Listener.Addr().String(), open: map[net.Conn]bool{}}, ready
}

// TestFrontFollowsReadiness: connections go to a server that is ready; those to one that is not any more end, and the next ones
// go elsewhere.
func TestFrontFollowsReadiness(t *testing.T) {
	a, aReady := behind(t, "a")
	b, bReady := behind(t, "b")
	bReady.Store(false)
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // their certificates are of httptest
	f := &front{servers: []*server{a, b}, client: &http.Client{Transport: insecure, Timeout: time.Minute}, log: slog.New(slog.DiscardHandler)}
	for _, s := range f.servers {
		go func() { _ = f.watch(t.Context(), s) }()
	}
	require.Eventually(t, a.isReady, time.Minute, time.Millisecond)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go f.serve(t.Context(), conn)
		}
	}()
	client := &http.Client{Transport: insecure.Clone(), Timeout: time.Minute}
	get := func() string {
		response, err := client.Get("https://" + listener.Addr().String() + "/")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return string(body)
	}
	require.Equal(t, "a", get())
	idle, err := tls.Dial("tcp", listener.Addr().String(), insecure.TLSClientConfig)
	require.NoError(t, err)
	defer idle.Close()

	bReady.Store(true)
	require.Eventually(t, b.isReady, time.Minute, time.Millisecond)
	aReady.Store(false)
	require.NoError(t, idle.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = idle.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, net.ErrClosed)
	timeout := net.Error(nil)
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the connection ends when its server is not ready")
	require.Equal(t, "b", get())
	require.Equal(t, "b", get())
}
