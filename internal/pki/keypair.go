package pki

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// KeyPair is a certificate and its private key.
type KeyPair struct {
	CertPEM, KeyPEM []byte

	certificate tls.Certificate
	leaf        *x509.Certificate
}

// Certificate is the pair in the form that crypto/tls takes.
func (k *KeyPair) Certificate() tls.Certificate { return k.certificate }

func (k *KeyPair) key() crypto.Signer { return k.certificate.PrivateKey.(crypto.Signer) }

// Leaf is the certificate, parsed.
func (k *KeyPair) Leaf() *x509.Certificate { return k.leaf }

// VerifiedBy is nil if one of the authorities vouches for the certificate, directly or through what it brings along.
func (k *KeyPair) VerifiedBy(authorities []*x509.Certificate, now time.Time) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, a := range authorities {
		roots.AddCert(a)
	}
	for _, der := range k.certificate.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	_, err := k.leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// ReadCombined reads a file with certificates and the key of the first, whoever has signed it.
func ReadCombined(path string) (*KeyPair, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	if err := private(path, info); err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	certificate, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("pki: %s: %w: %v", path, ErrDamaged, err)
	}
	pair := &KeyPair{certificate: certificate, leaf: certificate.Leaf}
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return pair, nil
		}
		if text := pem.EncodeToMemory(block); block.Type == "CERTIFICATE" {
			pair.CertPEM = append(pair.CertPEM, text...)
		} else {
			pair.KeyPEM = append(pair.KeyPEM, text...)
		}
	}
}

// WriteCombined stores a key, and the certificates that were issued for it, in one file: both or neither.
func WriteCombined(path string, key crypto.Signer, chain []byte) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return WriteFile(path, append(slices.Clone(chain), text...))
}

// bringing is the pair with the authorities behind the certificate. A machine that joins knows the hash of one of them,
// and needs to be shown it (as RFC 7671, 5.2.2, wants it of DANE-TA).
func (k *KeyPair) bringing(authorities []*x509.Certificate) *KeyPair {
	with := *k
	with.certificate.Certificate = slices.Clone(k.certificate.Certificate)
	for _, a := range authorities {
		with.certificate.Certificate = append(with.certificate.Certificate, a.Raw)
	}
	return &with
}

// errMismatch: both files are whole, and of two pairs.
var errMismatch = fmt.Errorf("%w: they do not belong together", ErrDamaged)

func readPair(path string) (*KeyPair, error) {
	certPEM, err := os.ReadFile(path + ".crt")
	if err != nil {
		return nil, err
	}
	// Each half is looked at by itself first, so that the error names the right file.
	if _, err := parseCertificates(certPEM); err != nil {
		return nil, fmt.Errorf("%s.crt: %w: %v", path, ErrDamaged, err)
	}
	keyPEM, err := readKeyFile(path + ".key")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s.crt and %s.key: %w", path, path, errMismatch)
	}
	return &KeyPair{CertPEM: certPEM, KeyPEM: keyPEM, certificate: certificate, leaf: certificate.Leaf}, nil
}

// readKeyFile returns a private key that nobody but its owner can read.
func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := private(path, info); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if _, err := parseKey(data); err != nil {
		return nil, fmt.Errorf("%s: %w: %v", path, ErrDamaged, err)
	}
	return data, nil
}

// ParseCertificates reads one or more PEM blocks CERTIFICATE, and nothing else.
func ParseCertificates(data []byte) ([]*x509.Certificate, error) {
	list, err := parseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("pki: %w: %v", ErrDamaged, err)
	}
	return list, nil
}

// EncodeCertificates is the reverse.
func EncodeCertificates(list []*x509.Certificate) (data []byte) {
	for _, c := range list {
		data = append(data, encodeCertificate(c.Raw)...)
	}
	return data
}

func private(path string, info os.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s: %w (mode %04o): chmod 600 it, and make another if somebody may have", path, ErrReadable, mode)
	}
	return nil
}

func readCertificates(path string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	certificates, err := parseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %v", path, ErrDamaged, err)
	}
	return certificates, nil
}

// parseCertificates reads one or more PEM blocks, and nothing else.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("a PEM block is %s, not CERTIFICATE", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out, data = append(out, c), rest
	}
	if len(out) == 0 {
		return nil, errors.New("no PEM block CERTIFICATE in it")
	}
	return out, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// parseKey reads the three ways in which PEM files hold private keys.
func parseKey(data []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("no PEM block in it")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		err = fmt.Errorf("PEM block %q is not a private key", block.Type)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}
