package authconfig

import (
	"bytes"
	"os"

	"k8s.io/apiserver/pkg/apis/apiserver"
)

// Files are where the configuration is; an empty path is no file, and leaves its part to the server.
type Files struct {
	Authentication string
	Authorization  string
	// OwnIssuer is the issuer of service accounts' tokens, which the authentication file cannot name.
	OwnIssuer string
}

// Rules are what the files say.
type Rules struct {
	// Issuers of tokens.
	Issuers []apiserver.JWTAuthenticator
	// AnonymousPaths can be asked for by those who do not say who they are; RBAC decides on them. "*" is all. Nil means health, version and
	// OpenID discovery, which are open to everybody.
	AnonymousPaths []string
	// Authorizers in the order in which they are asked; nil means Node and RBAC.
	Authorizers []apiserver.AuthorizerConfiguration
}

// Authenticate reads who is known into the rules; they are as they were if the file is at fault.
func (f Files) Authenticate(rules *Rules) error {
	if f.Authentication == "" {
		return nil
	}
	config, err := Authentication(f.Authentication, f.OwnIssuer)
	if err == nil {
		rules.Issuers, rules.AnonymousPaths = config.JWT, AnonymousPaths(config)
	}
	return err
}

// Authorize reads who decides into the rules; they are as they were if the file is at fault.
func (f Files) Authorize(rules *Rules) error {
	if f.Authorization == "" {
		return nil
	}
	config, err := Authorization(f.Authorization)
	if err == nil {
		rules.Authorizers = config.Authorizers
	}
	return err
}

// A Version is the bytes of a file when it was last looked at.
type Version struct{ seen []byte }

// Changed looks at a file again, and says whether it is another than the last time. One that cannot be read has not changed: it may
// be about to be replaced.
func (v *Version) Changed(path string) bool {
	if path == "" {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Equal(data, v.seen) {
		return false
	}
	v.seen = data
	return true
}
