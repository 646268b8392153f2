package etcdapi

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"kontiki/internal/pki"
	"kontiki/raftstore"
)

// secured returns a client with a TLS configuration.
func secured(t *testing.T, endpoint string, config *tls.Config) *clientv3.Client {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + endpoint}, TLS: config, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func openPKI(t *testing.T) *pki.PKI {
	certs, err := pki.Open(t.TempDir(), pki.Options{NodeName: "test", NodeIPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	require.NoError(t, err)
	return certs
}

// TestMutualTLS: clientv3 gets in with a certificate of the store's authority, and the log names who wrote. Nobody else
// gets in, nor does who does not trust the server, or speaks no HTTP/2.
func TestMutualTLS(t *testing.T) {
	certs, foreign := openPKI(t), openPKI(t)
	m := start(t, 1, Config{TLS: certs.StoreServing()})[0]
	ctx := within(t, time.Minute)
	c := secured(t, m.endpoint, certs.StoreClient())
	_, err := c.Put(ctx, "k", "v")
	require.NoError(t, err)
	answer := <-c.Watch(ctx, "k", clientv3.WithRev(1))
	require.Equal(t, "v", string(answer.Events[0].Kv.Value))
	require.Equal(t, "kontiki-store-client", writer(t, m.Member, "k"))

	changed := func(change func(mine, others *tls.Config)) *tls.Config {
		mine := certs.StoreClient()
		change(mine, foreign.StoreClient())
		return mine
	}
	for name, refused := range map[string]struct {
		config *tls.Config
		why    string
	}{
		"client of another authority": {changed(func(mine, others *tls.Config) { mine.Certificates = others.Certificates }), "remote error: tls: "},
		"client without certificate":  {changed(func(mine, _ *tls.Config) { mine.Certificates = nil }), "certificate required"},
		"server of another authority": {changed(func(mine, others *tls.Config) { mine.RootCAs = others.RootCAs }), "unknown authority"},
		"another protocol":            {changed(func(mine, _ *tls.Config) { mine.NextProtos = []string{"spdy/3"} }), "no application protocol"},
		"HTTP/1.1":                    {changed(func(mine, _ *tls.Config) { mine.NextProtos = []string{"http/1.1"} }), "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, handshake(t, m.endpoint, refused.config), refused.why)
		})
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = secured(t, m.endpoint, foreign.StoreClient()).Put(short, "foreign", "v")
	require.Error(t, err)
	got, err := c.Get(ctx, "foreign")
	require.NoError(t, err, "who is refused does not disturb who is in")
	require.Empty(t, got.Kvs)
}

// handshake returns why there is no connection. With TLS 1.3 a client hears that it was refused when it reads.
func handshake(t *testing.T, endpoint string, config *tls.Config) error {
	conn, err := tls.Dial("tcp", endpoint, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Read(make([]byte, 1))
	return err
}

// writer is who wrote a key last, as the raft log has it.
func writer(t *testing.T, m *raftstore.Member, key string) string {
	history, err := m.History([]byte(key))
	require.NoError(t, err)
	require.NotEmpty(t, history)
	return history[len(history)-1].By.User
}
