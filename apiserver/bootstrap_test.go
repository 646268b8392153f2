package apiserver_test

import (
	"context"
	"crypto"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/apiserver"
	"kontiki/apiserver/registry"
	"kontiki/internal/pki"
	"kontiki/raftstore"
)

// The objects that every cluster begins with, written again when they are gone, and brought up to date when
// the server comes back under another address.
func TestBootstrapObjects(t *testing.T) {
	dir := t.TempDir()
	keys, err := pki.Open(dir+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	trusted := ""
	for _, address := range []string{"10.1.2.3", "10.1.2.4"} {
		config, stop := serve(t, dir, keys, apiserver.Config{AdvertiseAddress: netip.MustParseAddr(address), ClientCA: func() []byte { return []byte("CA " + address + "\n") }})
		client := kubernetes.NewForConfigOrDie(config)
		for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			_, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
		}
		service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "10.96.0.1", service.Spec.ClusterIP)
		require.EqualValues(t, 443, service.Spec.Ports[0].Port)
		endpoints, err := client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}) //nolint:staticcheck // old clients read it
		require.NoError(t, err)
		require.Len(t, endpoints.Subsets[0].Addresses, 1)
		require.Equal(t, address, endpoints.Subsets[0].Addresses[0].IP)
		slice, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{address}, slice.Endpoints[0].Addresses)
		trust, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
		require.NoError(t, err)
		trusted += "CA " + address + "\n"
		require.Equal(t, trusted, trust.Data["client-ca-file"], "what an older certificate authority has signed stays good")
		stop()
	}
}

// serve runs a server on the store in dir until stop is called.
func serve(t *testing.T, dir string, keys *pki.PKI, config apiserver.Config) (client *rest.Config, stop func()) {
	t.Helper()
	store, err := raftstore.Open(raftstore.Config{Dir: dir + "/store", NodeID: "n", Bootstrap: true})
	require.NoError(t, err)
	client, stopServer := serveOn(t, store, keys, config)
	return client, func() {
		stopServer()
		require.NoError(t, store.Close())
	}
}

// serveOn runs a server on an open store until stop is called.
func serveOn(t *testing.T, store *raftstore.Member, keys *pki.PKI, config apiserver.Config) (client *rest.Config, stop func()) {
	t.Helper()
	_, client, stop = startOn(t, store, keys, config)
	return client, stop
}

func startOn(t *testing.T, store *raftstore.Member, keys *pki.PKI, config apiserver.Config) (server *apiserver.Server, client *rest.Config, stop func()) {
	t.Helper()
	config.KV, config.Table, config.TLS = store, registry.Builtin(registry.Options{}), keys.APIServing()
	config.TokenKeys = []crypto.Signer{keys.AccountKeys().Signer}
	server, err := apiserver.New(config)
	require.NoError(t, err)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	require.Eventually(t, server.Ready, time.Minute, 5*time.Millisecond)
	admin := keys.Client(pki.Admin)
	client = &rest.Config{
		Host:            "https://" + listener.Addr().String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: keys.CA(), CertData: admin.CertPEM, KeyData: admin.KeyPEM},
	}
	return server, client, func() {
		cancel()
		require.NoError(t, <-done)
		server.Close()
	}
}
