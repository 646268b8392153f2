package bootstraptoken

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// Token names itself by its ID; who has the Secret may use it.
type Token struct{ ID, Secret string }

var pattern = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)

// New makes a token from 82 random bits and those of its name.
func New() (Token, error) {
	text, err := characters(22)
	if err != nil {
		return Token{}, err
	}
	return Token{ID: text[:6], Secret: text[6:]}, nil
}

// characters returns n random ones of the alphabet. Bytes beyond its largest multiple are drawn again, so that none of
// them is likelier than another.
func characters(n int) (string, error) {
	const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
	var out strings.Builder
	for one := make([]byte, 1); out.Len() < n; {
		if _, err := rand.Read(one); err != nil {
			return "", err
		}
		if int(one[0]) < 256/len(alphabet)*len(alphabet) {
			out.WriteByte(alphabet[int(one[0])%len(alphabet)])
		}
	}
	return out.String(), nil
}

// Is says whether a text has the form of a token.
func Is(text string) bool { return pattern.MatchString(text) }

// Parse reads a token. The error is ErrFormat.
func Parse(text string) (Token, error) {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return Token{}, ErrFormat
	}
	return Token{ID: m[1], Secret: m[2]}, nil
}

// Bearer is what the Authorization header takes.
func (t Token) Bearer() string { return t.ID + "." + t.Secret }

// String is the public part, for logs.
func (t Token) String() string { return t.ID + ".[redacted]" }

// Join is a token and the hash of the authority of its cluster (pki.HashOf).
type Join struct {
	CAHash string
	Token  Token
}

const (
	joinPrefix = "K10"
	joinMiddle = "::"
)

// ParseJoin reads what Text returns. The error is ErrNoHash for a token alone, and otherwise ErrFormat.
func ParseJoin(text string) (Join, error) {
	rest, prefixed := strings.CutPrefix(text, joinPrefix)
	hash, token, found := strings.Cut(rest, joinMiddle)
	if Is(text) {
		return Join{}, ErrNoHash
	}
	if sum, err := hex.DecodeString(hash); !prefixed || !found || err != nil || len(sum) != 32 {
		return Join{}, fmt.Errorf("it must begin with K10, 64 hexadecimal digits and two colons: %w", ErrFormat)
	}
	parsed, err := Parse(token)
	return Join{CAHash: strings.ToLower(hash), Token: parsed}, err
}

// Text is what an operator hands to a machine. It is secret.
func (j Join) Text() string { return joinPrefix + j.CAHash + joinMiddle + j.Token.Bearer() }

// String is the public part, for logs.
func (j Join) String() string { return joinPrefix + j.CAHash + joinMiddle + j.Token.String() }
