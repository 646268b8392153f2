package pki

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
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
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s: %w (mode %04o): chmod 600 it, and make another if somebody may have", path, ErrReadable, mode)
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
