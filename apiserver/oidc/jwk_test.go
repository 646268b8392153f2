package oidc

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"another kind":        `{"kty":"oct","k":"AAAA"}`,
		"for encryption":      `{"kty":"EC","use":"enc","crv":"P-256","x":"AA","y":"AA"}`,
		"not on the curve":    `{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}`,
		"an unknown curve":    `{"kty":"EC","crv":"P-1","x":"AQ","y":"AQ"}`,
		"a short modulus":     `{"kty":"RSA","n":"AQAB","e":"AQAB"}`,
		"nothing":             `{}`,
		"no base64":           `{"kty":"RSA","n":"+/","e":"AQAB"}`,
		"a longer coordinate": `{"kty":"EC","crv":"P-256","x":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ","y":"AQ"}`,
	} {
		var j jsonWebKey
		require.NoError(t, json.Unmarshal([]byte(text), &j))
		_, ok := j.key()
		require.False(t, ok, name)
	}
}

func FuzzKey(f *testing.F) {
	f.Add(`{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}`)
	f.Add(`{"kty":"RSA","n":"AQAB","e":"AQAB"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var j jsonWebKey
		if json.Unmarshal([]byte(text), &j) != nil {
			return
		}
		k, ok := j.key()
		if !ok {
			return
		}
		switch public := k.public.(type) {
		case *rsa.PublicKey:
			require.GreaterOrEqual(t, public.N.BitLen(), minRSABits)
		case *ecdsa.PublicKey:
			_, err := public.Bytes()
			require.NoError(t, err)
		default:
			t.Fatalf("%T", public)
		}
		require.False(t, k.fits("none") || k.fits("HS256") && k.algorithm == "")
	})
}

func FuzzIssuerOf(f *testing.F) {
	f.Add("e30.eyJpc3MiOiJhIn0.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		a := &Authenticator{issuers: map[string]*issuer{}}
		_, known, err := a.Authenticate(t.Context(), token)
		require.False(t, known)
		require.NoError(t, err)
		_ = IssuerOf(token)
	})
}
