package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// serviceEndpoint serves HTTPS under the name of the Service ns/hook, and says its own name.
func serviceEndpoint(t *testing.T, name string, connections *atomic.Int64) (address string, ca []byte, stop func()) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"hook.ns.svc"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(name + " " + r.Host + " " + r.URL.String()))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), server.Close
}

// A hook behind a Service is asked at one of its endpoints, under the Service's name; connections last as long as the
// configuration names the place, whatever else changes, and no longer than the endpoint.
func TestServiceClient(t *testing.T) {
	var connections atomic.Int64
	address, ca, stop := serviceEndpoint(t, "first", &connections)
	endpoint := address
	path := "/validate"
	place := &admissionv1.WebhookClientConfig{CABundle: ca, Service: &admissionv1.ServiceReference{Namespace: "ns", Name: "hook", Path: &path}}
	all := newClients(func(_ context.Context, namespace, service string, port int32) (string, error) {
		require.Equal(t, "ns hook 443", namespace+" "+service+" "+"443")
		require.EqualValues(t, 443, port)
		return endpoint, nil
	})
	t.Cleanup(all.close)
	ask := func() string {
		all.begin()
		c := all.get(place.DeepCopy())
		all.end()
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond)
		defer cancel()
		answer, err := c.ask(ctx, []byte("{}"))
		require.NoError(t, err)
		return string(answer)
	}
	for range 3 {
		require.Equal(t, "first hook.ns.svc:443 /validate?timeout=8s", ask())
	}
	require.EqualValues(t, 1, connections.Load())

	var others atomic.Int64
	second, otherCA, _ := serviceEndpoint(t, "second", &others)
	stop()
	endpoint, place.CABundle = second, otherCA
	require.Equal(t, "second hook.ns.svc:443 /validate?timeout=8s", ask())
	require.Len(t, all.now, 1)
}
