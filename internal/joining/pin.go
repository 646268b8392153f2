package joining

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"kontiki/internal/pki"
)

// Trust connects to the API server at the URL server, makes sure that it has a certificate of the authority with the hash,
// sends nothing, and returns the cluster's authorities, the one that signs first. now is the clock of the certificates.
func Trust(ctx context.Context, server, hash string, now time.Time) ([]*x509.Certificate, error) {
	var trusted []*x509.Certificate
	err := handshake(ctx, server, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // by whose certificate? VerifyConnection knows
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			trusted, err = judge(state.PeerCertificates, hostOf(server), hash, now)
			return err
		},
	})
	return trusted, err
}

// Authorities connects to the API server at the URL server with config, which verifies it, and returns the authorities that
// it shows: those that it trusts now.
func Authorities(ctx context.Context, server string, config *tls.Config, known []*x509.Certificate) ([]*x509.Certificate, error) {
	var trusted []*x509.Certificate
	config = config.Clone()
	config.VerifyConnection = func(state tls.ConnectionState) error {
		trusted = authorities(state.PeerCertificates, func(c *x509.Certificate) bool { return slices.ContainsFunc(known, c.Equal) })
		return nil
	}
	return trusted, handshake(ctx, server, config)
}

func handshake(ctx context.Context, server string, config *tls.Config) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "443")
	}
	config.ServerName = u.Hostname()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	return conn.Close()
}

func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// judge decides on the certificates that a server shows, its own first. The rest may be anybody's; the one with the hash is
// what the others are measured by.
func judge(chain []*x509.Certificate, host, hash string, now time.Time) ([]*x509.Certificate, error) {
	pinned := func(c *x509.Certificate) bool { return pki.HashOf(c) == hash }
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	found := false
	for _, c := range chain[1:] {
		if between.AddCert(c); pinned(c) && c.IsCA {
			roots.AddCert(c)
			found = true
		}
	}
	if !found {
		return nil, ErrOtherCluster
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host, CurrentTime: now}); err != nil {
		return nil, errors.Join(ErrImpostor, err)
	}
	return authorities(chain, pinned), nil
}

// authorities are those of a chain that stand for themselves, and those that are known to be trusted. A certificate by
// which one authority vouches for another is neither. The handshake proves that the holder of the first certificate has
// sent them all (RFC 8446, 4.4.3).
func authorities(chain []*x509.Certificate, known func(*x509.Certificate) bool) (out []*x509.Certificate) {
	for _, c := range chain[1:] {
		if c.IsCA && (c.CheckSignatureFrom(c) == nil || known(c)) {
			out = append(out, c)
		}
	}
	return out
}
