package tokens_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"kontiki/apiserver/tokens"
)

const url = "https://kubernetes.default.svc"

var binding = tokens.Binding{Namespace: "a", ServiceAccount: tokens.Object{Name: "robot", UID: "u1"}, Pod: &tokens.Object{Name: "p", UID: "u2"}}

// clock is a time that the test moves.
type clock struct{ now time.Time }

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func newIssuer(t testing.TB, c *clock, keys ...crypto.Signer) *tokens.Issuer {
	t.Helper()
	issuer, err := tokens.New(tokens.Config{URL: url, Keys: keys, Now: func() time.Time { return c.now }})
	require.NoError(t, err)
	return issuer
}

func TestSignAndVerify(t *testing.T) {
	c := &clock{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	issuer := newIssuer(t, c, newKey(t))
	token, signed, err := issuer.Sign(binding, nil, time.Hour)
	require.NoError(t, err)
	require.True(t, issuer.Ours(token))
	claims, good, err := issuer.Verify(token, nil)
	require.NoError(t, err)
	require.Equal(t, []string{url}, good)
	require.Equal(t, binding, claims.Kubernetes)
	require.Equal(t, "system:serviceaccount:a:robot", claims.Subject)
	require.Equal(t, signed.ID, claims.ID)
	require.Equal(t, c.now.Add(time.Hour).Unix(), claims.Expires().Unix())

	_, _, err = issuer.Verify(token, []string{"vault"})
	require.ErrorIs(t, err, tokens.ErrInvalid)
	token, _, err = issuer.Sign(binding, []string{"vault", "x"}, time.Hour)
	require.NoError(t, err)
	_, good, err = issuer.Verify(token, []string{"vault", "other"})
	require.NoError(t, err)
	require.Equal(t, []string{"vault"}, good)
	_, _, err = issuer.Verify(token, nil)
	require.ErrorIs(t, err, tokens.ErrInvalid, "for vault, not for the API")

	c.now = c.now.Add(time.Hour + time.Second)
	_, _, err = issuer.Verify(token, []string{"vault"})
	require.ErrorIs(t, err, jwt.ErrTokenExpired)
	c.now = c.now.Add(-2 * time.Hour)
	_, _, err = issuer.Verify(token, []string{"vault"})
	require.ErrorIs(t, err, tokens.ErrInvalid, "not good yet")
}

// A new key signs, and the old one still verifies; a stranger's does not.
func TestKeyRotation(t *testing.T) {
	c := &clock{time.Now()}
	old, next := newKey(t), newKey(t)
	token, _, err := newIssuer(t, c, old).Sign(binding, nil, time.Hour)
	require.NoError(t, err)
	both := newIssuer(t, c, next, old)
	_, _, err = both.Verify(token, nil)
	require.NoError(t, err)
	fresh, _, err := both.Sign(binding, nil, time.Hour)
	require.NoError(t, err)
	_, _, err = newIssuer(t, c, next).Verify(fresh, nil)
	require.NoError(t, err)
	_, _, err = newIssuer(t, c, next).Verify(token, nil)
	require.ErrorIs(t, err, tokens.ErrInvalid)
	running := newIssuer(t, c, old) // changes its key while it runs
	require.NoError(t, running.SetKeys(next, old.Public()))
	fresh, _, err = running.Sign(binding, nil, time.Hour)
	require.NoError(t, err)
	_, _, err = newIssuer(t, c, next).Verify(fresh, nil)
	require.NoError(t, err)
	_, _, err = running.Verify(token, nil)
	require.NoError(t, err)
	require.NoError(t, running.SetKeys(next))
	_, _, err = running.Verify(token, nil)
	require.ErrorIs(t, err, tokens.ErrInvalid)
	require.ErrorIs(t, running.SetKeys(next, "no key"), tokens.ErrKey)
	_, _, err = running.Verify(fresh, nil)
	require.NoError(t, err, "the keys of before stay in use")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, err = tokens.New(tokens.Config{URL: url, Keys: []crypto.Signer{rsaKey}})
	require.ErrorIs(t, err, tokens.ErrKey)
}

// What somebody else made, or changed, is nobody's; and the error does not give it away.
func TestForgeries(t *testing.T) {
	c := &clock{time.Now()}
	key := newKey(t)
	issuer := newIssuer(t, c, key)
	token, claims, err := issuer.Sign(binding, nil, time.Hour)
	require.NoError(t, err)
	parts := strings.Split(token, ".")
	segment := func(v any) string {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	header := map[string]string{}
	raw, err := base64.RawURLEncoding.DecodeString(parts[0])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &header))
	other := *claims
	other.Kubernetes.ServiceAccount.Name, other.Subject = "admin", tokens.Subject("a", "admin")
	differing := *claims
	differing.Subject = tokens.Subject("kube-system", "admin")
	signedBy := func(claims jwt.Claims, method jwt.SigningMethod, with any) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = header["kid"]
		out, err := token.SignedString(with)
		require.NoError(t, err)
		return out
	}
	public, err := key.PublicKey.Bytes()
	require.NoError(t, err)
	foreign := *claims
	foreign.Issuer = "https://elsewhere"
	unending := *claims
	unending.ExpiresAt = nil
	for name, forged := range map[string]string{
		"empty":                  "",
		"no token":               "abc",
		"three dots":             token + ".x",
		"other claims":           parts[0] + "." + segment(other) + "." + parts[2],
		"no signature":           parts[0] + "." + parts[1] + ".",
		"algorithm none":         segment(map[string]string{"alg": "none", "kid": header["kid"]}) + "." + parts[1] + ".",
		"public key as a secret": signedBy(claims, jwt.SigningMethodHS256, public),
		"stranger's key":         signedBy(claims, jwt.SigningMethodES256, newKey(t)),
		"account of another":     signedBy(&differing, jwt.SigningMethodES256, key),
		"another issuer":         signedBy(&foreign, jwt.SigningMethodES256, key),
		"no end":                 signedBy(&unending, jwt.SigningMethodES256, key),
		"padded":                 token + "=",
		"too long":               parts[0] + "." + strings.Repeat("A", 9000) + "." + parts[2],
	} {
		_, _, err := issuer.Verify(forged, nil)
		require.ErrorIs(t, err, tokens.ErrInvalid, name)
		require.NotContains(t, err.Error(), parts[1][:20], name)
	}
}

// Whoever fetches the published key can check a token without the cluster.
func TestKeySet(t *testing.T) {
	c := &clock{time.Now()}
	issuer := newIssuer(t, c, newKey(t), newKey(t))
	token, _, err := issuer.Sign(binding, nil, time.Hour)
	require.NoError(t, err)
	data, err := issuer.KeySet()
	require.NoError(t, err)
	var set struct {
		Keys []struct{ Kid, X, Y, Kty, Crv, Alg string }
	}
	require.NoError(t, json.Unmarshal(data, &set))
	require.Len(t, set.Keys, 2)
	_, err = jwt.Parse(token, func(token *jwt.Token) (any, error) {
		for _, k := range set.Keys {
			if k.Kid == token.Header["kid"] {
				x, err := base64.RawURLEncoding.DecodeString(k.X)
				require.NoError(t, err)
				y, err := base64.RawURLEncoding.DecodeString(k.Y)
				require.NoError(t, err)
				return &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}, nil
			}
		}
		return nil, jwt.ErrTokenUnverifiable
	})
	require.NoError(t, err)
	discovery, err := issuer.Discovery("https://10.0.0.1:6443/openid/v1/jwks")
	require.NoError(t, err)
	require.JSONEq(t, `{"issuer":"`+url+`","jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],
		"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`, string(discovery))
}

// Whatever arrives, nothing is accepted that was not signed here.
func FuzzVerify(f *testing.F) {
	c := &clock{time.Now()}
	issuer := newIssuer(f, c, newKey(f))
	token, _, err := issuer.Sign(binding, nil, time.Hour)
	require.NoError(f, err)
	f.Add(token)
	f.Add("a.b.c")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		issuer.Ours(s)
		if _, _, err := issuer.Verify(s, nil); err == nil {
			require.Equal(t, token, s)
		}
	})
}
