package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/cel"
)

// maxTokenBytes bounds what is parsed: tokens with hundreds of groups are larger than service accounts'.
const maxTokenBytes = 32 << 10

// notBeforeSkew is how far an issuer's clock may be ahead.
const notBeforeSkew = 5 * time.Minute

// algorithms are the asymmetric ones of RFC 7518, as Kubernetes accepts them.
var algorithms = []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"}

// Options of an Authenticator.
type Options struct {
	// OwnIssuer is the issuer of service accounts' tokens, which cannot be one of the configuration.
	OwnIssuer string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger // nil discards
}

// Authenticator judges tokens of the issuers of one configuration. It is safe for concurrent use.
type Authenticator struct {
	issuers map[string]*issuer
}

type issuer struct {
	config  apiserver.JWTAuthenticator
	mapping cel.CELMapper
	keys    *keySet
	parser  *jwt.Parser
	now     func() time.Time
}

// New compiles the configuration's issuers. The error says, as Kubernetes does, which fields are wrong.
func New(config []apiserver.JWTAuthenticator, options Options) (*Authenticator, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	a := &Authenticator{issuers: map[string]*issuer{}}
	if len(config) == 0 {
		return a, nil // CEL takes a while to set up
	}
	compiler := cel.NewDefaultCompiler()
	for _, c := range config {
		mapping, faults := validation.CompileAndValidateJWTAuthenticator(compiler, c, []string{options.OwnIssuer})
		if err := faults.ToAggregate(); err != nil {
			return nil, fmt.Errorf("issuer %q: %w", c.Issuer.URL, err)
		}
		keys, err := newKeySet(c.Issuer, options)
		if err != nil {
			return nil, fmt.Errorf("issuer %q: %w", c.Issuer.URL, err)
		}
		a.issuers[c.Issuer.URL] = &issuer{
			config: c, mapping: mapping, keys: keys, now: options.Now,
			parser: jwt.NewParser(jwt.WithValidMethods(algorithms), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation()),
		}
	}
	return a, nil
}

// Authenticate finds out whose token it is. known is false if the token is of none of the issuers; else the error is ErrInvalid or
// ErrKeys.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (user authenticationv1.UserInfo, known bool, err error) {
	if len(a.issuers) == 0 || len(token) > maxTokenBytes {
		return user, false, nil
	}
	i := a.issuers[IssuerOf(token)]
	if i == nil {
		return user, false, nil
	}
	user, err = i.authenticate(ctx, token)
	return user, true, err
}

// IssuerOf is the issuer that a token claims to come from; empty if it is no token. It proves nothing.
func IssuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

func (i *issuer) authenticate(ctx context.Context, token string) (user authenticationv1.UserInfo, err error) {
	values := jwt.MapClaims{}
	parsed, _, err := i.parser.ParseUnverified(token, values)
	if err != nil {
		return user, fmt.Errorf("%w: malformed", ErrInvalid)
	}
	if !slices.Contains(algorithms, parsed.Method.Alg()) {
		return user, fmt.Errorf("%w: algorithm %q", ErrInvalid, parsed.Method.Alg())
	}
	if err := i.verifySignature(ctx, token, parsed); err != nil {
		return user, err
	}
	// IssuerOf reads as encoding/json does, which takes ISS for iss: what was verified must name the issuer itself.
	if name, _ := values["iss"].(string); name != i.config.Issuer.URL {
		return user, fmt.Errorf("%w: it names another issuer", ErrInvalid)
	}
	if err := i.checkTimes(values); err != nil {
		return user, err
	}
	audiences, err := values.GetAudience()
	if err != nil || !slices.ContainsFunc(i.config.Issuer.Audiences, func(a string) bool { return slices.Contains(audiences, a) }) {
		return user, fmt.Errorf("%w: it is for another audience", ErrInvalid)
	}
	return i.user(ctx, values)
}

// verifySignature tries the key that the token names, or, if it names none, all there are.
func (i *issuer) verifySignature(ctx context.Context, token string, parsed *jwt.Token) error {
	id, _ := parsed.Header["kid"].(string)
	keys, err := i.keys.get(ctx, id)
	if err != nil {
		return err
	}
	dot := strings.LastIndexByte(token, '.')
	signature, err := base64.RawURLEncoding.Strict().DecodeString(token[dot+1:])
	if err != nil {
		return fmt.Errorf("%w: malformed", ErrInvalid)
	}
	for _, key := range keys {
		if key.fits(parsed.Method.Alg()) && parsed.Method.Verify(token[:dot], signature, key.public) == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: no key of the issuer has signed it", ErrInvalid)
}

// checkTimes: a token must say when it ends.
func (i *issuer) checkTimes(values jwt.MapClaims) error {
	now := i.now()
	expires, err := values.GetExpirationTime()
	if err != nil || expires == nil || !now.Before(expires.Time) {
		return fmt.Errorf("%w: it has expired, or says not when it will", ErrInvalid)
	}
	begins, err := values.GetNotBefore()
	if err != nil || begins != nil && now.Add(notBeforeSkew).Before(begins.Time) {
		return fmt.Errorf("%w: it is not good yet", ErrInvalid)
	}
	return nil
}
