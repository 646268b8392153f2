package pki

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
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

func readPair(path string) (*KeyPair, error) {
	certPEM, err := os.ReadFile(path + ".crt")
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(path + ".key")
	if err != nil {
		return nil, err
	}
	// Each half is looked at by itself first, so that the error names the right file.
	if err := checkCertificate(certPEM); err != nil {
		return nil, fmt.Errorf("%s.crt: %w: %v", path, ErrDamaged, err)
	}
	if _, err := parseKey(keyPEM); err != nil {
		return nil, fmt.Errorf("%s.key: %w: %v", path, ErrDamaged, err)
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s.crt and %s.key: %w: %v", path, path, ErrDamaged, err)
	}
	return &KeyPair{CertPEM: certPEM, KeyPEM: keyPEM, certificate: certificate, leaf: certificate.Leaf}, nil
}

func checkCertificate(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return fmt.Errorf("no PEM block CERTIFICATE in it")
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err
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

// openSigningKey reads path.key, or creates it, and keeps its public half in path.pub.
func openSigningKey(path string) (crypto.Signer, error) {
	if !exists(path + ".key") {
		if exists(path + ".pub") {
			return nil, fmt.Errorf("%s.key is missing beside %s.pub: %w", path, path, ErrHalf)
		}
		key, err := newKey()
		if err != nil {
			return nil, err
		}
		if err := writeKey(path+".key", key); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(path + ".key")
	if err != nil {
		return nil, err
	}
	key, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s.key: %w: %v", path, ErrDamaged, err)
	}
	if exists(path + ".pub") {
		return key, nil
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("%s.key: %w", path, err)
	}
	return key, writeFile(path+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
