package encryption_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
)

// plugin is a KMS v2 plugin on a real socket: AES-GCM with keys that it holds, by their ids.
type plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	socket string
	server *grpc.Server

	mu        sync.Mutex // guards what follows
	keys      map[string]cipher.AEAD
	current   string
	unhealthy string // what it says of itself; empty: ok
	encrypts  int
	decrypts  int
}

// startPlugin starts a plugin with one key.
func startPlugin(t *testing.T) *plugin {
	t.Helper()
	p := &plugin{socket: filepath.Join(t.TempDir(), "kms.sock"), keys: map[string]cipher.AEAD{}}
	p.rotate(t, "one")
	p.listen(t)
	t.Cleanup(func() { p.server.Stop() })
	return p
}

func (p *plugin) listen(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", p.socket)
	require.NoError(t, err)
	p.server = grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(p.server, p)
	go p.server.Serve(listener)
}

// rotate makes the plugin encrypt with a new key. It still decrypts with those before.
func (p *plugin) rotate(t *testing.T, id string) {
	t.Helper()
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	block, err := aes.NewCipher(secret)
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[id], p.current = aead, id
}

func (p *plugin) calls() (encrypts, decrypts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.encrypts, p.decrypts
}

func (p *plugin) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	health := "ok"
	if p.unhealthy != "" {
		health = p.unhealthy
	}
	return &kmsapi.StatusResponse{Version: "v2", Healthz: health, KeyId: p.current}, nil
}

func (p *plugin) Encrypt(_ context.Context, r *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.encrypts++
	nonce := make([]byte, 12)
	_, _ = rand.Read(nonce)
	return &kmsapi.EncryptResponse{
		Ciphertext: p.keys[p.current].Seal(nonce, nonce, r.Plaintext, nil), KeyId: p.current,
		Annotations: map[string][]byte{"local.test": []byte("x")},
	}, nil
}

func (p *plugin) Decrypt(_ context.Context, r *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decrypts++
	aead := p.keys[r.KeyId]
	if aead == nil || string(r.Annotations["local.test"]) != "x" {
		return nil, errors.New("no such key: " + r.KeyId)
	}
	plain, err := aead.Open(nil, r.Ciphertext[:12], r.Ciphertext[12:], nil)
	if err != nil {
		return nil, err
	}
	return &kmsapi.DecryptResponse{Plaintext: plain}, nil
}
