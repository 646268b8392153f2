package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

// provider is an identity provider: a real server over TLS with discovery and keys.
type provider struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex // guards what follows
	keys    []map[string]string
	fetches int
	down    bool
	issuer  string // that discovery names
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, document any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(document)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"issuer": p.issuer, "jwks_uri": p.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		p.fetches++
		keys := p.keys
		p.mu.Unlock()
		answer(w, map[string]any{"keys": keys})
	})
	p.Server = httptest.NewTLSServer(mux)
	p.issuer = p.URL
	t.Cleanup(p.Close)
	return p
}

func (p *provider) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
}

func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// config trusts the provider for the audience "kontiki", with the claims sub and groups.
func (p *provider) config() apiserver.JWTAuthenticator {
	none := ""
	return apiserver.JWTAuthenticator{
		Issuer: apiserver.Issuer{URL: p.URL, CertificateAuthority: p.ca(), Audiences: []string{"kontiki"}},
		ClaimMappings: apiserver.ClaimMappings{
			Username: apiserver.PrefixedClaimOrExpression{Claim: "sub", Prefix: &none},
			Groups:   apiserver.PrefixedClaimOrExpression{Claim: "groups", Prefix: &none},
		},
	}
}

// signer is a key of a provider.
type signer struct {
	id     string
	method jwt.SigningMethod
	key    crypto.Signer
}

func newECKey(t *testing.T, id string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return signer{id, jwt.SigningMethodES256, key}
}

func newRSAKey(t *testing.T, id string, bits int) signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	return signer{id, jwt.SigningMethodRS256, key}
}

func text(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }

// published is the key as a JSON web key.
func (s signer) published() map[string]string {
	switch key := s.key.Public().(type) {
	case *rsa.PublicKey:
		return map[string]string{"kty": "RSA", "kid": s.id, "use": "sig", "n": text(key.N), "e": text(big.NewInt(int64(key.E)))}
	case *ecdsa.PublicKey:
		point, _ := key.Bytes()
		half := len(point) / 2
		return map[string]string{"kty": "EC", "kid": s.id, "crv": "P-256",
			"x": base64.RawURLEncoding.EncodeToString(point[1 : 1+half]), "y": base64.RawURLEncoding.EncodeToString(point[1+half:])}
	}
	return nil
}

func (s signer) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(s.method, jwt.MapClaims(claims))
	if s.id != "" {
		token.Header["kid"] = s.id
	}
	signed, err := token.SignedString(s.key)
	require.NoError(t, err)
	return signed
}

// claims of a token that is good for an hour from now, with changes; nil takes a claim away.
func (p *provider) claims(now time.Time, changes map[string]any) map[string]any {
	claims := map[string]any{"iss": p.URL, "aud": "kontiki", "sub": "jane", "exp": now.Add(time.Hour).Unix(), "groups": []string{"dev"}, "jti": "7"}
	for key, value := range changes {
		if claims[key] = value; value == nil {
			delete(claims, key)
		}
	}
	return claims
}

func selfSignedCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
