package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// User is who makes a request.
type User struct {
	Name   string
	Groups []string
	// Credential tells which certificate (or, later, token) the user has shown; empty if none.
	Credential string
}

// credentialID is the key of User.Credential among what API objects say of a user beside name and groups.
const credentialID = "authentication.kubernetes.io/credential-id"

// The groups and names that the authorizer knows.
const (
	userAnonymous = "system:anonymous"

	groupMasters         = "system:masters"
	groupNodes           = "system:nodes"
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
)

func (u User) in(group string) bool { return slices.Contains(u.Groups, group) }

// info is the user as API objects name them.
func (u User) info() authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, Groups: u.Groups}
	if u.Credential != "" {
		info.Extra = map[string]authenticationv1.ExtraValue{credentialID: {u.Credential}}
	}
	return info
}

// withAuthentication finds out who asks. The TLS handshake has verified the client certificate
// against the cluster CA and its validity period (tls.VerifyClientCertIfGiven); its common name is
// the user and its organizations are the groups, as in Kubernetes. Without one the user is
// anonymous, whom the authorizer lets see health and version and nothing else.
//
// Not yet: service account tokens, bootstrap tokens, the front-proxy CA, impersonation. Whoever asks to
// be somebody else is refused, since answering as themselves could show or do too much.
func (s *Server) withAuthentication(next http.Handler) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		user, err := authenticate(r)
		if err != nil {
			return err
		}
		factsOf(r.Context()).user = user
		if as := r.Header.Get("Impersonate-User"); as != "" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, as, errors.New("impersonation is not available"))
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

func authenticate(r *http.Request) (User, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		certificate := r.TLS.VerifiedChains[0][0]
		if subject := certificate.Subject; subject.CommonName != "" {
			sum := sha256.Sum256(certificate.Raw)
			return User{Name: subject.CommonName, Groups: append(slices.Clone(subject.Organization), groupAuthenticated),
				Credential: "X509SHA256=" + hex.EncodeToString(sum[:])}, nil
		}
	}
	if r.Header.Get("Authorization") != "" {
		return User{}, apierrors.NewUnauthorized("Unauthorized") // no kind of token is known yet
	}
	return User{Name: userAnonymous, Groups: []string{groupUnauthenticated}}, nil
}
