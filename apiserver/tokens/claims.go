package tokens

import (
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Object is what a token is bound to, or an account, by name and uid.
type Object struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Binding is what Kubernetes adds to the claims of RFC 7519, under "kubernetes.io".
type Binding struct {
	Namespace      string  `json:"namespace"`
	ServiceAccount Object  `json:"serviceaccount"`
	Pod            *Object `json:"pod,omitempty"`
	Secret         *Object `json:"secret,omitempty"`
	Node           *Object `json:"node,omitempty"`
}

// Claims are what a token says. Its ID ("jti") names it in audit records.
type Claims struct {
	jwt.RegisteredClaims
	Kubernetes Binding `json:"kubernetes.io"`
}

const subjectPrefix = "system:serviceaccount:"

// Subject is the user that an account is.
func Subject(namespace, name string) string { return subjectPrefix + namespace + ":" + name }

// Account is the reverse of Subject; ok is false for users who are no service account.
func Account(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, subjectPrefix)
	namespace, name, found := strings.Cut(rest, ":")
	if !ok || !found || namespace == "" || name == "" || strings.Contains(name, ":") {
		return "", "", false
	}
	return namespace, name, true
}

// Validate implements jwt.ClaimsValidator: subject and account must be the same, or one could be told by either.
func (c *Claims) Validate() error {
	k := &c.Kubernetes
	namespace, name, ok := Account(c.Subject)
	if !ok || k.ServiceAccount.UID == "" || namespace != k.Namespace || name != k.ServiceAccount.Name {
		return errors.New("subject and service account differ")
	}
	return nil
}

// Expires is when the token ends.
func (c *Claims) Expires() time.Time {
	if c.ExpiresAt == nil {
		return time.Time{}
	}
	return c.ExpiresAt.Time
}
