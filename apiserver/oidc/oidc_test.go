package oidc_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"kontiki/apiserver/oidc"
)

// clock is moved by tests.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func start(t *testing.T, p *provider, change func(*apiserver.JWTAuthenticator)) (*oidc.Authenticator, *clock) {
	t.Helper()
	c, config := &clock{time.Unix(1_800_000_000, 0)}, p.config()
	if change != nil {
		change(&config)
	}
	a, err := oidc.New([]apiserver.JWTAuthenticator{config}, oidc.Options{OwnIssuer: "https://own", Now: c.now})
	require.NoError(t, err)
	return a, c
}

func TestTokens(t *testing.T) {
	p := newProvider(t)
	ec, rsa, small, other := newECKey(t, "ec"), newRSAKey(t, "rsa", 2048), newRSAKey(t, "small", 1024), newECKey(t, "ec")
	p.keys = []map[string]string{ec.published(), rsa.published(), small.published()}
	a, c := start(t, p, nil)
	user, known, err := a.Authenticate(t.Context(), ec.sign(t, p.claims(c.Time, nil)))
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, authenticationv1.UserInfo{Username: "jane", Groups: []string{"dev"},
		Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=7"}}}, user)
	for name, token := range map[string]string{
		"RSA":                rsa.sign(t, p.claims(c.Time, nil)),
		"no kid":             signer{"", ec.method, ec.key}.sign(t, p.claims(c.Time, nil)),
		"several audiences":  ec.sign(t, p.claims(c.Time, map[string]any{"aud": []string{"x", "kontiki"}})),
		"a clock that skews": ec.sign(t, p.claims(c.Time, map[string]any{"nbf": c.Add(time.Minute).Unix()})),
		"one group":          ec.sign(t, p.claims(c.Time, map[string]any{"groups": "dev"})),
	} {
		_, known, err = a.Authenticate(t.Context(), token)
		require.True(t, known, name)
		require.NoError(t, err, name)
	}
	good := ec.sign(t, p.claims(c.Time, nil))
	unsigned := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims(p.claims(c.Time, nil)))
	none, err := unsigned.SignedString(jwt.UnsafeAllowNoneSignatureType)
	require.NoError(t, err)
	shared := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims(p.claims(c.Time, nil)))
	shared.Header["kid"] = "ec"
	hmac, err := shared.SignedString([]byte(ec.published()["x"]))
	require.NoError(t, err)
	head, payload, _ := strings.Cut(good, ".")
	for name, token := range map[string]string{
		"expired":               ec.sign(t, p.claims(c.Time, map[string]any{"exp": c.Unix()})),
		"without an end":        ec.sign(t, p.claims(c.Time, map[string]any{"exp": nil})),
		"not good yet":          ec.sign(t, p.claims(c.Time, map[string]any{"nbf": c.Add(time.Hour).Unix()})),
		"another audience":      ec.sign(t, p.claims(c.Time, map[string]any{"aud": "x"})),
		"no audience":           ec.sign(t, p.claims(c.Time, map[string]any{"aud": nil})),
		"no name":               ec.sign(t, p.claims(c.Time, map[string]any{"sub": nil})),
		"a name as a number":    ec.sign(t, p.claims(c.Time, map[string]any{"sub": 7})),
		"groups as numbers":     ec.sign(t, p.claims(c.Time, map[string]any{"groups": []int{1}})),
		"another's key":         other.sign(t, p.claims(c.Time, nil)),
		"a short RSA key":       small.sign(t, p.claims(c.Time, nil)),
		"none":                  none,
		"HMAC of public key":    hmac,
		"changed":               head + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+p.URL+`","aud":"kontiki","sub":"root","exp":9999999999}`)) + payload[strings.IndexByte(payload, '.'):],
		"a cut signature":       good[:len(good)-4],
		"an issuer in capitals": ec.sign(t, p.claims(c.Time, map[string]any{"iss": "https://other", "iſs": p.URL, "ISS": p.URL})),
		"EC key of RSA token":   signer{"ec", rsa.method, rsa.key}.sign(t, p.claims(c.Time, nil)),
	} {
		_, known, err := a.Authenticate(t.Context(), token)
		require.True(t, known, name)
		require.ErrorIs(t, err, oidc.ErrInvalid, name)
		require.NotContains(t, err.Error(), token[strings.LastIndexByte(token, '.'):], name)
	}
	for _, token := range []string{"", "a.b.c", "..", ec.sign(t, p.claims(c.Time, map[string]any{"iss": "https://other"})), strings.Repeat("a", 40<<10)} {
		_, known, err := a.Authenticate(t.Context(), token)
		require.False(t, known)
		require.NoError(t, err)
	}
}

// A new key works at once, one that was taken back not much longer, and no token makes the server ask more than every ten seconds.
func TestKeyRotation(t *testing.T) {
	p := newProvider(t)
	first, second := newECKey(t, "1"), newECKey(t, "2")
	p.keys = []map[string]string{first.published()}
	a, c := start(t, p, nil)
	token := func(s signer) string {
		return s.sign(t, p.claims(c.Time, map[string]any{"exp": c.Add(9 * time.Hour).Unix()}))
	}
	check := func(s signer, want error) {
		t.Helper()
		_, _, err := a.Authenticate(t.Context(), token(s))
		require.ErrorIs(t, err, want)
	}
	check(first, nil)
	for range 5 {
		check(second, oidc.ErrInvalid)
	}
	require.Equal(t, 1, p.fetches)
	p.set(func() { p.keys = append(p.keys, second.published()) })
	c.Time = c.Add(11 * time.Second)
	check(second, nil)
	require.Equal(t, 2, p.fetches)

	p.set(func() { p.keys = p.keys[1:] })
	check(first, nil)
	c.Time = c.Add(time.Hour)
	check(first, oidc.ErrInvalid)
	check(second, nil)

	p.set(func() { p.down = true })
	c.Time = c.Add(2 * time.Hour)
	check(second, nil)
	check(first, oidc.ErrKeys)
	p.set(func() { p.down = false })
	check(first, oidc.ErrKeys) // asked a moment ago
	c.Time = c.Add(11 * time.Second)
	check(first, oidc.ErrInvalid)
}

func TestProviderThatIsAnother(t *testing.T) {
	p := newProvider(t)
	p.issuer = "https://other"
	key := newECKey(t, "1")
	p.keys = []map[string]string{key.published()}
	a, c := start(t, p, nil)
	_, _, err := a.Authenticate(t.Context(), key.sign(t, p.claims(c.Time, nil)))
	require.ErrorIs(t, err, oidc.ErrKeys)
	require.ErrorContains(t, err, `is the discovery document of "https://other"`)

	stranger := newProvider(t)
	a, c = start(t, stranger, func(config *apiserver.JWTAuthenticator) {
		config.Issuer.CertificateAuthority = string(selfSignedCA(t))
	})
	_, _, err = a.Authenticate(t.Context(), key.sign(t, stranger.claims(c.Time, nil)))
	require.ErrorContains(t, err, "certificate signed by unknown authority")
}

func TestExpressions(t *testing.T) {
	p := newProvider(t)
	key := newECKey(t, "1")
	p.keys = []map[string]string{key.published()}
	a, c := start(t, p, func(config *apiserver.JWTAuthenticator) {
		config.ClaimMappings = apiserver.ClaimMappings{
			Username: apiserver.PrefixedClaimOrExpression{Expression: "'ci:' + claims.repository.owner"},
			Groups:   apiserver.PrefixedClaimOrExpression{Expression: "claims.roles.split(',')"},
			UID:      apiserver.ClaimOrExpression{Claim: "sub"},
			Extra:    []apiserver.ExtraMapping{{Key: "acme.org/ref", ValueExpression: "claims.?ref.orValue('')"}},
		}
		config.ClaimValidationRules = []apiserver.ClaimValidationRule{
			{Claim: "hd", RequiredValue: "acme.org"}, {Expression: "claims.level > 2.0", Message: "too low"}}
		config.UserValidationRules = []apiserver.UserValidationRule{
			{Expression: "!user.username.startsWith('ci:system')", Message: "reserved"}, {Expression: "user.groups.all(g, !g.startsWith('system:'))", Message: "reserved group"}}
	})
	claims := func(changes map[string]any) string {
		base := map[string]any{"repository": map[string]any{"owner": "acme"}, "roles": "a,b", "hd": "acme.org", "level": 3, "groups": nil}
		for key, value := range changes {
			base[key] = value
		}
		return key.sign(t, p.claims(c.Time, base))
	}
	user, _, err := a.Authenticate(t.Context(), claims(map[string]any{"ref": "main"}))
	require.NoError(t, err)
	require.Equal(t, "ci:acme", user.Username)
	require.Equal(t, []string{"a", "b"}, user.Groups)
	require.Equal(t, "jane", user.UID)
	require.Equal(t, authenticationv1.ExtraValue{"main"}, user.Extra["acme.org/ref"])
	user, _, err = a.Authenticate(t.Context(), claims(nil))
	require.NoError(t, err)
	require.NotContains(t, user.Extra, "acme.org/ref")
	for want, changes := range map[string]map[string]any{
		`claim "hd" is not what it must be`: {"hd": "other"},
		"failed: too low":                   {"level": 2},
		"failed: reserved":                  {"repository": map[string]any{"owner": "system:x"}},
		"failed: reserved group":            {"roles": "system:masters"},
		"no such key: repository":           {"repository": nil},
		"no such key: roles":                {"roles": nil},
	} {
		_, _, err := a.Authenticate(t.Context(), claims(changes))
		require.ErrorIs(t, err, oidc.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

func TestUnverifiedAddress(t *testing.T) {
	p := newProvider(t)
	key := newECKey(t, "1")
	p.keys = []map[string]string{key.published()}
	a, c := start(t, p, func(config *apiserver.JWTAuthenticator) { config.ClaimMappings.Username.Claim = "email" })
	for verified, ok := range map[any]bool{true: true, false: false, "true": false, nil: true} {
		_, _, err := a.Authenticate(t.Context(), key.sign(t, p.claims(c.Time, map[string]any{"email": "j@acme.org", "email_verified": verified})))
		require.Equal(t, ok, err == nil, "%v: %v", verified, err)
	}
}

func TestConfigurationsThatAreWrong(t *testing.T) {
	p := newProvider(t)
	for want, change := range map[string]func(*apiserver.JWTAuthenticator){
		"issuer.url":           func(c *apiserver.JWTAuthenticator) { c.Issuer.URL = "http://plain" },
		"URL must not overlap": func(c *apiserver.JWTAuthenticator) { c.Issuer.URL = "https://own" },
		"issuer.audiences":     func(c *apiserver.JWTAuthenticator) { c.Issuer.Audiences = nil },
		"claimMappings.username.expression": func(c *apiserver.JWTAuthenticator) {
			c.ClaimMappings.Username = apiserver.PrefixedClaimOrExpression{Expression: "claims."}
		},
		"issuer.certificateAuthority": func(c *apiserver.JWTAuthenticator) { c.Issuer.CertificateAuthority = "x" },
	} {
		config := p.config()
		change(&config)
		_, err := oidc.New([]apiserver.JWTAuthenticator{config}, oidc.Options{OwnIssuer: "https://own"})
		require.ErrorContains(t, err, want)
	}
}
