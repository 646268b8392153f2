package tokens

import (
	"crypto"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

var (
	// ErrKey is a signing key that is not ECDSA P-256.
	ErrKey = errors.New("service-account keys must be ECDSA P-256")
	// ErrInvalid is a token that was not signed here, is over, not good yet, or good elsewhere.
	ErrInvalid = errors.New("invalid token")
)

// maxTokenBytes bounds what is parsed; the longest names make tokens of about 3 KiB.
const maxTokenBytes = 8 << 10

// Config of an Issuer.
type Config struct {
	// URL is the issuer that tokens name, and the audience that they get when none is asked for.
	URL string
	// Keys verify tokens; the first one signs them. SetKeys changes them: the old one has to verify until the last token
	// that it signed has expired.
	Keys []crypto.Signer
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Issuer signs tokens and reads them again. It is safe for concurrent use.
type Issuer struct {
	config Config
	keys   atomic.Pointer[keys]
	parser *jwt.Parser
}

// New returns an issuer. The error is ErrKey for keys that cannot be used.
func New(config Config) (*Issuer, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	i := &Issuer{config: config}
	if len(config.Keys) == 0 {
		return nil, ErrKey
	}
	var others []crypto.PublicKey
	for _, key := range config.Keys[1:] {
		others = append(others, key.Public())
	}
	if err := i.SetKeys(config.Keys[0], others...); err != nil {
		return nil, err
	}
	i.parser = jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithIssuer(config.URL),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithTimeFunc(config.Now), jwt.WithStrictDecoding())
	return i, nil
}

// URL is the issuer that tokens name.
func (i *Issuer) URL() string { return i.config.URL }

// Sign makes a token for what binding says, good for the audiences (the issuer's own if there are none) and for a
// time from now on.
func (i *Issuer) Sign(binding Binding, audiences []string, life time.Duration) (token string, claims *Claims, err error) {
	if len(audiences) == 0 {
		audiences = []string{i.config.URL}
	}
	now := i.config.Now().Truncate(time.Second)
	claims = &Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    i.config.URL,
			Subject:   Subject(binding.Namespace, binding.ServiceAccount.Name),
			Audience:  audiences,
			IssuedAt:  jwt.NewNumericDate(now),
			NotBefore: jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(life)),
			ID:        uuid.NewString(),
		},
		Kubernetes: binding,
	}
	token, err = i.signed(claims)
	return token, claims, err
}

func (i *Issuer) signed(claims jwt.Claims) (string, error) {
	unsigned := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	keys := i.keys.Load()
	unsigned.Header["kid"] = keys.id
	delete(unsigned.Header, "typ") // as Kubernetes' tokens
	return unsigned.SignedString(keys.signer)
}

// Ours says whether a token claims to come from this issuer. It proves nothing; it says who should judge.
func (i *Issuer) Ours(token string) bool {
	var claims jwt.RegisteredClaims
	_, _, err := i.parser.ParseUnverified(token, &claims)
	return err == nil && claims.Issuer == i.config.URL
}

// Verify reads a token that is good now for one of the audiences (the issuer's own if there are none), and returns for which.
// The error is ErrInvalid.
func (i *Issuer) Verify(token string, audiences []string) (claims *Claims, good []string, err error) {
	if len(token) > maxTokenBytes || strings.Count(token, ".") != 2 {
		return nil, nil, ErrInvalid
	}
	claims = &Claims{}
	if _, err := i.parser.ParseWithClaims(token, claims, i.keyOf); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, reasonOf(err))
	}
	good, err = claims.GoodFor(audiences, i.config.URL)
	return claims, good, err
}

// GoodFor returns those of the audiences that the token names; own stands for none. The error is ErrInvalid if there are none.
func (c *Claims) GoodFor(audiences []string, own string) ([]string, error) {
	if len(audiences) == 0 {
		audiences = []string{own}
	}
	var good []string
	for _, a := range audiences {
		if slices.Contains(c.Audience, a) {
			good = append(good, a)
		}
	}
	if good == nil {
		return nil, fmt.Errorf("%w: it is for another audience", ErrInvalid)
	}
	return good, nil
}

func (i *Issuer) keyOf(token *jwt.Token) (any, error) {
	id, _ := token.Header["kid"].(string)
	if key := i.keys.Load().public[id]; key != nil {
		return key, nil
	}
	return nil, jwt.ErrTokenUnverifiable
}

// reasonOf keeps what kind of fault it is and drops the rest, which could quote the token.
func reasonOf(err error) error {
	for _, known := range []error{jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued, jwt.ErrTokenSignatureInvalid,
		jwt.ErrTokenInvalidIssuer, jwt.ErrTokenUnverifiable, jwt.ErrTokenInvalidClaims} {
		if errors.Is(err, known) {
			return known
		}
	}
	return jwt.ErrTokenMalformed
}
