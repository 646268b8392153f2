package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"slices"
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// clockSkew is how far the clocks of two machines may differ without a fresh certificate being
	// refused as not yet valid.
	clockSkew = 5 * time.Minute
)

// authority is a certificate authority: path.crt and path.key, and while it is being replaced path-old.crt, which is
// still trusted, and path-cross.crt (rotation.go).
type authority struct {
	path string
	cert *x509.Certificate
	key  crypto.Signer
	// cross is the authority's own certificate signed by the old one, in PEM. It goes with every certificate that is
	// issued, for those who trust the old authority only. Empty but during a rotation.
	cross []byte
	// trusted are the certificates of path.crt, the first of which signs, and of path-old.crt.
	trusted []*x509.Certificate
	bundle  []byte // the trusted ones in PEM
	pool    *x509.CertPool
}

// openAuthority reads an authority; one of which there is nothing yet is created.
func openAuthority(path, commonName string, now time.Time) (*authority, error) {
	if err := finishSwitch(path); err != nil {
		return nil, err
	}
	if !exists(path+".crt") && !exists(path+".key") {
		if err := createAuthority(path, commonName, now); err != nil {
			return nil, err
		}
	}
	a, err := readAuthority(path)
	if err != nil {
		return nil, err
	}
	if now.After(a.cert.NotAfter) {
		return nil, fmt.Errorf("%s.crt: %w on %s: `kontiki certs renew` signs it again with the same key", path, ErrExpired, a.cert.NotAfter.Format(time.DateOnly))
	}
	return a, nil
}

// readAuthority reads an authority, in date or not.
func readAuthority(path string) (*authority, error) {
	switch certThere, keyThere := exists(path+".crt"), exists(path+".key"); {
	case !certThere:
		return nil, fmt.Errorf("%s.crt is missing beside %s.key: %w", path, path, ErrHalf)
	case !keyThere:
		return nil, fmt.Errorf("%s.key is missing beside %s.crt: %w", path, path, ErrHalf)
	}
	pair, err := readPair(path)
	if err != nil {
		return nil, err
	}
	if !pair.leaf.IsCA {
		return nil, fmt.Errorf("%s.crt: %w: not a certificate authority", path, ErrDamaged)
	}
	a := &authority{path: path, cert: pair.leaf, key: pair.key(), pool: x509.NewCertPool()}
	if a.trusted, err = readCertificates(path + ".crt"); err != nil {
		return nil, err
	}
	if exists(oldAuthority(path)) {
		old, err := readCertificates(oldAuthority(path))
		if err != nil {
			return nil, err
		}
		a.trusted = append(a.trusted, old...)
	}
	for _, c := range a.trusted {
		a.pool.AddCert(c)
		a.bundle = append(a.bundle, encodeCertificate(c.Raw)...)
	}
	if a.cross, err = os.ReadFile(crossCertificate(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return a, nil
}

func createAuthority(path, commonName string, now time.Time) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template := authorityTemplate(commonName, now)
	der, err := sign(template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("sign %s.crt: %w", path, err)
	}
	return writePair(path, key, encodeCertificate(der))
}

func authorityTemplate(commonName string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
}

// signed says whether the authority signed a certificate with the key that it signs with now.
func (a *authority) signed(cert *x509.Certificate) bool {
	return cert.CheckSignatureFrom(a.cert) == nil
}

// trusts says whether the authority, or one that it replaces, signed a certificate.
func (a *authority) trusts(cert *x509.Certificate) bool {
	return slices.ContainsFunc(a.trusted, func(c *x509.Certificate) bool { return cert.CheckSignatureFrom(c) == nil })
}

// pair returns the certificate and key at path, issued anew if the ones there will not do.
func (a *authority) pair(path string, want profile, now time.Time, life time.Duration) (*KeyPair, error) {
	if exists(path+".crt") && exists(path+".key") {
		pair, err := readPair(path)
		switch {
		case errors.Is(err, errMismatch): // a crash between the two files; nobody has used either
		case err != nil:
			return nil, err
		case !a.trusts(pair.leaf):
			return nil, fmt.Errorf("%s.crt: %w than %s.crt: remove it to have it issued again", path, ErrForeign, a.path)
		case want.satisfiedBy(pair.leaf) && a.signed(pair.leaf) && !a.due(pair.leaf, now, life):
			return pair, nil
		}
	}
	if err := a.issue(path, want.template(), now, life); err != nil {
		return nil, err
	}
	return readPair(path)
}

// issue makes a key and a certificate for it.
func (a *authority) issue(path string, template *x509.Certificate, now time.Time, life time.Duration) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	chain, err := a.certify(template, key.Public(), now, life)
	if err != nil {
		return fmt.Errorf("sign %s.crt: %w", path, err)
	}
	return writePair(path, key, chain)
}

// certify signs a certificate for a public key that lasts for life, but not longer than the authority, and returns it
// with what somebody needs to verify it.
func (a *authority) certify(template *x509.Certificate, public any, now time.Time, life time.Duration) ([]byte, error) {
	template.NotBefore, template.NotAfter = now.Add(-clockSkew), now.Add(life)
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	der, err := sign(template, a.cert, public, a.key)
	if err != nil {
		return nil, err
	}
	return append(encodeCertificate(der), a.cross...), nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func sign(template, parent *x509.Certificate, public any, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1)) // positive: RFC 5280, 4.1.2.2
	return x509.CreateCertificate(rand.Reader, template, parent, public, signer)
}

// writePair stores path.key, then path.crt. After a crash between the two they do not belong together, which pair mends.
func writePair(path string, key crypto.Signer, chain []byte) error {
	if err := writeKey(path+".key", key); err != nil {
		return err
	}
	return writeFile(path+".crt", chain)
}

func writeKey(path string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
