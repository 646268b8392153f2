package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"math/big"
	"strings"
)

// jsonWebKey is a public key of RFC 7517: RSA or EC (RFC 7518, 6.2 and 6.3). Other kinds are passed over.
type jsonWebKey struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y"`
	N         string `json:"n"`
	E         string `json:"e"`
}

// key is one that can verify.
type key struct {
	id        string
	algorithm string // the only one it is for; empty for all of its kind
	public    any    // *rsa.PublicKey or *ecdsa.PublicKey
}

// minRSABits: shorter keys have been broken.
const minRSABits = 2048

// maxRSABits bounds the work that a published key can cause.
const maxRSABits = 8192

var curves = map[string]struct {
	elliptic.Curve
	algorithm string
}{
	"P-256": {elliptic.P256(), "ES256"}, "P-384": {elliptic.P384(), "ES384"}, "P-521": {elliptic.P521(), "ES512"},
}

func (j *jsonWebKey) key() (k key, ok bool) {
	k = key{id: j.ID, algorithm: j.Algorithm}
	if j.Use != "" && j.Use != "sig" {
		return k, false
	}
	switch j.Type {
	case "RSA":
		k.public, ok = j.rsa()
	case "EC":
		if k.algorithm == "" {
			k.algorithm = curves[j.Curve].algorithm
		}
		k.public, ok = j.ec()
	}
	return k, ok
}

func (j *jsonWebKey) rsa() (*rsa.PublicKey, bool) {
	n, e := number(j.N), number(j.E)
	if n == nil || e == nil || n.BitLen() < minRSABits || n.BitLen() > maxRSABits || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 {
		return nil, false
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, true
}

func (j *jsonWebKey) ec() (*ecdsa.PublicKey, bool) {
	curve, known := curves[j.Curve]
	x, y := number(j.X), number(j.Y)
	if !known || x == nil || y == nil {
		return nil, false
	}
	size := (curve.Params().BitSize + 7) / 8
	if len(x.Bytes()) > size || len(y.Bytes()) > size {
		return nil, false
	}
	point := append([]byte{4}, append(x.FillBytes(make([]byte, size)), y.FillBytes(make([]byte, size))...)...)
	public, err := ecdsa.ParseUncompressedPublicKey(curve.Curve, point) // it must be on the curve
	return public, err == nil
}

func number(text string) *big.Int {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) == 0 || len(data) > maxRSABits/8+1 {
		return nil
	}
	return new(big.Int).SetBytes(data)
}

// fits says whether the key may verify signatures of an algorithm: an RSA key those of RS and PS, an EC key those of its curve.
func (k *key) fits(algorithm string) bool {
	if k.algorithm != "" {
		return k.algorithm == algorithm
	}
	_, isRSA := k.public.(*rsa.PublicKey)
	return isRSA && (strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS"))
}
