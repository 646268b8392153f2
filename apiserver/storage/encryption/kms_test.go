package encryption_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	upstreamaes "k8s.io/apiserver/pkg/storage/value/encrypt/aes"

	"google.golang.org/protobuf/proto"
	"k8s.io/apiserver/pkg/storage/value"
	kmstypes "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2"

	"kontiki/apiserver/storage/encryption"
)

// replace puts a new configuration in the place of one, as whoever rotates keys should: nobody sees half of it.
func replace(t *testing.T, path string, providers ...string) {
	t.Helper()
	next := file(t, filepath.Join(t.TempDir(), "next.yaml"), providers...)
	require.NoError(t, os.Rename(next, path))
}

func reloads(t *testing.T, e *encryption.Encryption, status string) (n float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(e.Collectors()...)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == status {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func (p *plugin) provider() string {
	return "{kms: {apiVersion: v2, name: vault, endpoint: 'unix://" + p.socket + "', timeout: 2s}}"
}

// TestPluginIsAskedOnce: once for each seed, however many values there are.
func TestPluginIsAskedOnce(t *testing.T) {
	p := startPlugin(t)
	path := file(t, "", p.provider())
	r := open(t, path).For(secrets)
	var stored [][]byte
	for range 100 {
		value, err := r.Seal(at, plain)
		require.NoError(t, err)
		stored = append(stored, value)
		_, _, err = r.Open(at, value)
		require.NoError(t, err)
	}
	encrypts, decrypts := p.calls()
	require.Equal(t, []int{1, 0}, []int{encrypts, decrypts})

	after := open(t, path).For(secrets) // a restart
	for _, value := range stored {
		got, stale, err := after.Open(at, value)
		require.NoError(t, err)
		require.Equal(t, plain, got)
		require.False(t, stale)
	}
	encrypts, decrypts = p.calls()
	require.Equal(t, []int{2, 1}, []int{encrypts, decrypts})
}

func TestPluginRotates(t *testing.T) {
	p := startPlugin(t)
	path := file(t, "", p.provider())
	stored, err := open(t, path).For(secrets).Seal(at, plain)
	require.NoError(t, err)
	p.rotate(t, "two")
	r := open(t, path).For(secrets)
	got, stale, err := r.Open(at, stored)
	require.NoError(t, err)
	require.Equal(t, plain, got)
	require.True(t, stale, "it wants to be written again")
	stored, err = r.Seal(at, got)
	require.NoError(t, err)
	_, stale, err = r.Open(at, stored)
	require.NoError(t, err)
	require.False(t, stale)
}

func TestPluginIsDown(t *testing.T) {
	p := startPlugin(t)
	path := file(t, "", p.provider())
	stored, err := open(t, path).For(secrets).Seal(at, plain)
	require.NoError(t, err)
	p.server.Stop()
	r := open(t, path).For(secrets) // a server starts without its plugin
	_, err = r.Seal(at, plain)
	require.ErrorIs(t, err, encryption.ErrUnavailable)
	require.ErrorContains(t, err, "vault")
	require.ErrorContains(t, err, at)
	_, _, err = r.Open(at, stored)
	require.ErrorIs(t, err, encryption.ErrUnavailable)

	p.listen(t)
	require.Eventually(t, func() bool { _, _, err := r.Open(at, stored); return err == nil }, readyTime, pollTime, "what is read needs no restart")
	p.mu.Lock()
	p.unhealthy = "the token has expired"
	p.mu.Unlock()
	_, err = open(t, path).For(secrets).Seal(at, plain)
	require.ErrorContains(t, err, "the token has expired")
}

// TestKubernetesReadsSeeds takes an envelope apart with kube-apiserver's code.
func TestKubernetesReadsSeeds(t *testing.T) {
	p := startPlugin(t)
	stored, err := open(t, file(t, "", p.provider())).For(secrets).Seal(at, plain)
	require.NoError(t, err)
	envelope := &kmstypes.EncryptedObject{}
	require.NoError(t, proto.Unmarshal(stored[len("k8s:enc:kms:v2:vault:"):], envelope))
	require.Equal(t, "one", envelope.KeyID)
	require.Equal(t, kmstypes.EncryptedDEKSourceType_HKDF_SHA256_XNONCE_AES_GCM_SEED, envelope.EncryptedDEKSourceType)
	seed, err := p.keys["one"].Open(nil, envelope.EncryptedDEKSource[:12], envelope.EncryptedDEKSource[12:], nil)
	require.NoError(t, err)
	theirs, err := upstreamaes.NewHKDFExtendedNonceGCMTransformer(seed)
	require.NoError(t, err)
	got, _, err := theirs.TransformFromStorage(t.Context(), envelope.EncryptedData, value.DefaultContext(at))
	require.NoError(t, err)
	require.Equal(t, plain, got)
}
