package encryption

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"

	"golang.org/x/crypto/nacl/secretbox"
)

// cipherer encrypts with a key that it has.
type cipherer interface {
	seal(plain, key []byte) []byte
	open(sealed, key []byte) (plain []byte, err error)
}

// staticKey is the provider of a key in the file.
type staticKey struct {
	name   []byte // the prefix
	cipher cipherer
}

func (k staticKey) prefix() []byte { return k.name }

func (k staticKey) seal(plain, key []byte) ([]byte, error) { return k.cipher.seal(plain, key), nil }

func (k staticKey) open(sealed, key []byte) ([]byte, bool, error) {
	plain, err := k.cipher.open(sealed, key)
	return plain, false, err
}

// identity is the provider that does nothing.
type identity struct{}

func (identity) prefix() []byte                              { return nil }
func (identity) seal(plain, _ []byte) ([]byte, error)        { return plain, nil }
func (identity) open(stored, _ []byte) ([]byte, bool, error) { return stored, false, nil }

// gcm is AES-GCM with random nonces. One key is good for 2^32 values (NIST SP 800-38D, section 8.3).
type gcm struct{ aead cipher.AEAD }

func newGCM(secret []byte) (cipherer, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return gcm{aead}, err
}

// seal has the key in the store authenticated: a value that somebody copies to another key does not open there.
func (c gcm) seal(plain, key []byte) []byte {
	nonce := make([]byte, c.aead.NonceSize(), c.aead.NonceSize()+len(plain)+c.aead.Overhead())
	random(nonce)
	return c.aead.Seal(nonce, nonce, plain, key)
}

func (c gcm) open(sealed, key []byte) ([]byte, error) {
	n := c.aead.NonceSize()
	if len(sealed) < n {
		return nil, ErrDamaged
	}
	plain, err := c.aead.Open(nil, sealed[:n], sealed[n:], key)
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}

// box is NaCl's secretbox: XSalsa20 and Poly1305.
type box struct{ secret [32]byte }

const boxNonceBytes = 24

func newBox(secret []byte) (cipherer, error) { return &box{[32]byte(secret)}, nil }

func (c *box) seal(plain, _ []byte) []byte {
	var nonce [boxNonceBytes]byte
	random(nonce[:])
	return secretbox.Seal(nonce[:], plain, &nonce, &c.secret)
}

func (c *box) open(sealed, _ []byte) ([]byte, error) {
	if len(sealed) < boxNonceBytes {
		return nil, ErrDamaged
	}
	plain, ok := secretbox.Open(nil, sealed[boxNonceBytes:], (*[boxNonceBytes]byte)(sealed), &c.secret)
	if !ok {
		return nil, ErrDamaged
	}
	return plain, nil
}

// cbc is AES-CBC with PKCS #7 padding, for stores that were written with it: nothing in it tells a forged value from a true one.
type cbc struct{ block cipher.Block }

func newCBC(secret []byte) (cipherer, error) {
	block, err := aes.NewCipher(secret)
	return cbc{block}, err
}

func (c cbc) seal(plain, _ []byte) []byte {
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	out := make([]byte, aes.BlockSize, aes.BlockSize+len(plain)+padding)
	random(out)
	out = append(append(out, plain...), bytes.Repeat([]byte{byte(padding)}, padding)...)
	cipher.NewCBCEncrypter(c.block, out[:aes.BlockSize]).CryptBlocks(out[aes.BlockSize:], out[aes.BlockSize:])
	return out
}

func (c cbc) open(sealed, _ []byte) ([]byte, error) {
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, ErrDamaged
	}
	plain := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCBCDecrypter(c.block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding == 0 || padding > aes.BlockSize || !bytes.HasSuffix(plain, bytes.Repeat([]byte{byte(padding)}, padding)) {
		return nil, ErrDamaged
	}
	return plain[:len(plain)-padding], nil
}

// random fills b from the system's source, which does not fail (crypto/rand).
func random(b []byte) { _, _ = rand.Read(b) }
