package livetls

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerRefinesWhatFollows(t *testing.T) {
	refine := func(c *tls.Config) { c.NextProtos = []string{"h2"} }
	plain := &tls.Config{}
	require.Equal(t, []string{"h2"}, Server(plain, refine).NextProtos)
	require.Empty(t, plain.NextProtos, "it works on a copy")

	later := &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	following := Server(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return later, nil }}, refine)
	fresh, err := following.GetConfigForClient(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"h2"}, fresh.NextProtos)
	require.Equal(t, tls.RequireAnyClientCert, fresh.ClientAuth)
	require.Empty(t, later.NextProtos)

	broken := errors.New("broken")
	failing := Server(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, broken }}, refine)
	_, err = failing.GetConfigForClient(nil)
	require.ErrorIs(t, err, broken)
}

// A request that runs goes on when the configuration changes; the next one has a connection of its own.
func TestTransportRedials(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			began <- struct{}{}
			<-release
		}
	}))
	defer server.Close()
	config := func() *tls.Config {
		return server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	}
	var current atomic.Pointer[tls.Config]
	current.Store(config())
	made := 0
	transport := NewTransport(current.Load, func(c *tls.Config) *http.Transport { made++; return &http.Transport{TLSClientConfig: c} })
	client := &http.Client{Transport: transport}
	get := func(path string) {
		answer, err := client.Get(server.URL + path)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	get("/")
	get("/")
	require.Equal(t, 1, made)
	slow := make(chan error, 1)
	go func() {
		answer, err := client.Get(server.URL + "/slow")
		if err == nil {
			err = answer.Body.Close()
		}
		slow <- err
	}()
	<-began
	current.Store(config())
	get("/")
	require.Equal(t, 2, made)
	close(release)
	require.NoError(t, <-slow)
	transport.CloseIdleConnections()
}
