package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"time"
)

// Sign signs a certificate of the cluster's authority for a public key, good for life but not longer than the authority,
// and returns it in PEM with what somebody needs to verify it. The template says for whom and for what.
func (p *PKI) Sign(template *x509.Certificate, public any, life time.Duration) ([]byte, error) {
	chain, err := p.current.Load().cluster.certify(template, public, p.opts.Now(), life)
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	return chain, nil
}

// CertificateLife is how long certificates are good for that are issued here.
func (p *PKI) CertificateLife() time.Duration { return p.opts.CertificateLife }

// Hash is what a join token says about the cluster's authority: the SHA-256 of its public key (RFC 7469, 2.4), in
// hexadecimal. It stays the same when the authority is renewed with the key that it has.
func (p *PKI) Hash() string { return HashOf(p.current.Load().cluster.cert) }

// HashOf is Hash of a certificate.
func HashOf(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}
