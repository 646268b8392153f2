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
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is issued again on start.
	renewBefore = 30 * 24 * time.Hour
	// clockSkew is how far the clocks of two machines may differ without a fresh certificate being
	// refused as not yet valid.
	clockSkew = 5 * time.Minute
)

// authority is a certificate authority: path.crt and path.key.
type authority struct {
	path    string
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer
	pool    *x509.CertPool
}

func openAuthority(path, commonName string, now time.Time) (*authority, error) {
	certThere, keyThere := exists(path+".crt"), exists(path+".key")
	switch {
	case !certThere && !keyThere:
		if err := createAuthority(path, commonName, now); err != nil {
			return nil, err
		}
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
	if now.After(pair.leaf.NotAfter) {
		return nil, fmt.Errorf("%s.crt: %w on %s", path, ErrExpired, pair.leaf.NotAfter.Format(time.DateOnly))
	}
	pool := x509.NewCertPool()
	pool.AddCert(pair.leaf)
	return &authority{path: path, cert: pair.leaf, certPEM: pair.CertPEM, key: pair.key(), pool: pool}, nil
}

func createAuthority(path, commonName string, now time.Time) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return writePair(path, template, template, key, key)
}

// pair returns the certificate and key at path, issued anew if the ones there will not do.
func (a *authority) pair(path string, want profile, now time.Time) (*KeyPair, error) {
	if exists(path+".crt") && exists(path+".key") {
		pair, err := readPair(path)
		if err != nil {
			return nil, err
		}
		if err := pair.leaf.CheckSignatureFrom(a.cert); err != nil {
			return nil, fmt.Errorf("%s.crt: %w than %s.crt: remove it to have it issued again", path, ErrForeign, a.path)
		}
		if want.satisfiedBy(pair.leaf) && now.Add(renewBefore).Before(pair.leaf.NotAfter) {
			return pair, nil
		}
	}
	if err := a.issue(path, want, now); err != nil {
		return nil, err
	}
	return readPair(path)
}

func (a *authority) issue(path string, want profile, now time.Time) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template := want.template()
	template.NotBefore = now.Add(-clockSkew)
	template.NotAfter = now.Add(certificateLife)
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	return writePair(path, template, a.cert, key, a.key)
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// writePair signs template and stores path.key, then path.crt: a certificate without its key would
// be of no use to anybody.
func writePair(path string, template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1)) // positive: RFC 5280, 4.1.2.2
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return fmt.Errorf("sign %s.crt: %w", path, err)
	}
	if err := writeKey(path+".key", key); err != nil {
		return err
	}
	return writeFile(path+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
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
