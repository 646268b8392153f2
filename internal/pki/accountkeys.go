package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The keys of service-account tokens: sa.key signs and sa.pub is its public half. Beside them may be sa-next.key, which
// verifies already and will sign (rotation.go), and sa-old.pub with the public keys of those that have signed.
const (
	accountKey     = "sa"
	nextAccountKey = "sa-next"
	oldAccountKeys = "sa-old.pub"
)

// AccountKeys sign and verify the tokens of service accounts.
type AccountKeys struct {
	// Signer signs; its public half verifies.
	Signer crypto.Signer
	// Others verify in addition.
	Others []crypto.PublicKey
}

// openAccountKeys reads the keys, and creates the first one.
func openAccountKeys(dir string) (keys AccountKeys, err error) {
	if keys.Signer, err = openSigningKey(filepath.Join(dir, accountKey)); err != nil {
		return keys, err
	}
	if next := filepath.Join(dir, nextAccountKey); exists(next + ".key") {
		key, err := openSigningKey(next)
		if err != nil {
			return keys, err
		}
		keys.Others = append(keys.Others, key.Public())
	}
	old, err := readPublicKeys(filepath.Join(dir, oldAccountKeys))
	keys.Others = append(keys.Others, old...)
	return keys, err
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
	data, err := readKeyFile(path + ".key")
	if err != nil {
		return nil, err
	}
	key, err := parseKey(data)
	if err != nil || exists(path+".pub") {
		return key, err
	}
	public, err := encodePublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("%s.key: %w", path, err)
	}
	return key, writeFile(path+".pub", public)
}

func encodePublicKey(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}

// readPublicKeys reads a file of PEM blocks. One that is not there has none.
func readPublicKeys(path string) (keys []crypto.PublicKey, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		block, rest := pem.Decode(data)
		if block == nil && len(keys) > 0 {
			return keys, nil
		}
		if block == nil {
			return nil, fmt.Errorf("%s: %w: no PEM block PUBLIC KEY in it", path, ErrDamaged)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %v", path, ErrDamaged, err)
		}
		keys, data = append(keys, key), rest
	}
}
