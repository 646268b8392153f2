package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"kontiki/internal/apiclient"
	"kontiki/internal/bootstraptoken"
	"kontiki/internal/pki"
)

// Config of a Manager.
type Config struct {
	// Dir is where the certificates are kept.
	Dir string
	// Servers are the API servers.
	Servers *apiclient.Servers
	// NodeName and NodeIPs are whom the certificates are for.
	NodeName string
	NodeIPs  []net.IP
	// Token joins the cluster, if the node has no certificate that is good. Nil joins none.
	Token *bootstraptoken.Join
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log discards when nil.
	Log *slog.Logger
}

// Manager holds a node's certificates and keeps them in date. Its methods may be called from several goroutines.
type Manager struct {
	config  Config
	current atomic.Pointer[state] // replaced by Open and by Keep, one after the other
}

// state is what the node has at one time. It does not change.
type state struct {
	trusted         []*x509.Certificate // the one that signs first
	client, serving *pki.KeyPair        // serving is nil until there is one
	clientTLS       *tls.Config
	servingTLS      *tls.Config // nil as serving is
}

// Open reads the node's certificates or, if it has none that is good, joins the cluster of the token.
func Open(ctx context.Context, config Config) (*Manager, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	m := &Manager{config: config}
	s, err := m.read()
	joinable := errors.Is(err, ErrNotJoined) || errors.Is(err, ErrExpired)
	switch {
	case err == nil:
		m.noteOtherCluster(s)
	case joinable && config.Token != nil:
		if s, err = m.join(ctx); err != nil {
			return nil, fmt.Errorf("join: %w", err)
		}
	case joinable:
		return nil, fmt.Errorf("%w: give it a --token, which `kontiki token create` on a server prints", err)
	default:
		return nil, err
	}
	m.use(s)
	return m, m.writeKubeconfig(s)
}

// The files below Config.Dir. A certificate and its key are in one, so that a crash cannot part them.
const (
	caFile      = "ca.crt"
	clientFile  = "client.pem"
	servingFile = "serving.pem"
)

func (m *Manager) path(name string) string { return filepath.Join(m.config.Dir, name) }

// read loads what is on disk.
func (m *Manager) read() (*state, error) {
	data, err := os.ReadFile(m.path(caFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotJoined
	}
	if err != nil {
		return nil, err
	}
	s := &state{}
	if s.trusted, err = pki.ParseCertificates(data); err != nil {
		return nil, fmt.Errorf("%s: %w", m.path(caFile), err)
	}
	if s.client, err = pki.ReadCombined(m.path(clientFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNotJoined
		}
		return nil, err
	}
	if end := s.client.Leaf().NotAfter; m.config.Now().After(end) {
		return nil, fmt.Errorf("%w on %s", ErrExpired, end.Format(time.DateOnly))
	}
	if want := "system:node:" + m.config.NodeName; s.client.Leaf().Subject.CommonName != want {
		return nil, fmt.Errorf("%s is for %s, not %s: to join under another name, move %s away", m.path(clientFile),
			s.client.Leaf().Subject.CommonName, want, m.config.Dir)
	}
	if s.serving, err = pki.ReadCombined(m.path(servingFile)); err != nil {
		s.serving = nil // Keep asks for another; whoever calls the agent waits until then
	}
	return s, nil
}

// noteOtherCluster warns that a token is not used: a node that has joined stays where it is.
func (m *Manager) noteOtherCluster(s *state) {
	if t := m.config.Token; t != nil && !slices.ContainsFunc(s.trusted, func(c *x509.Certificate) bool { return pki.HashOf(c) == t.CAHash }) {
		m.config.Log.Warn("the token is not used: this node has joined, and the token's CA hash is of another cluster or of an authority that was replaced", "dir", m.config.Dir)
	}
}

// use takes a state into use.
func (m *Manager) use(s *state) {
	pool := x509.NewCertPool()
	for _, c := range s.trusted {
		pool.AddCert(c)
	}
	s.clientTLS = &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{s.client.Certificate()}, Time: m.config.Now,
	}
	if s.serving != nil {
		s.servingTLS = &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{s.serving.Certificate()}, Time: m.config.Now,
			ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		}
	}
	m.current.Store(s)
}

// Client is how the agent calls the API server now (livetls.Source).
func (m *Manager) Client() *tls.Config { return m.current.Load().clientTLS }

// Serving is how the agent is called: by holders of a certificate of the cluster's authority, which it looks up at each
// handshake. Until there is a serving certificate no handshake succeeds.
func (m *Manager) Serving() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if current := m.current.Load().servingTLS; current != nil {
				return current, nil
			}
			return nil, errNotServing
		},
	}
}

func (m *Manager) writeKubeconfig(s *state) error {
	return pki.WriteKubeconfig(m.path("kubeconfig"), m.config.Servers.Current(), pki.EncodeCertificates(s.trusted), s.client)
}
