package apiserver

import (
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
}

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
	return authenticationv1.UserInfo{Username: u.Name, Groups: u.Groups}
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
		subject := r.TLS.VerifiedChains[0][0].Subject
		if subject.CommonName != "" {
			return User{Name: subject.CommonName, Groups: append(slices.Clone(subject.Organization), groupAuthenticated)}, nil
		}
	}
	if r.Header.Get("Authorization") != "" {
		return User{}, apierrors.NewUnauthorized("Unauthorized") // no kind of token is known yet
	}
	return User{Name: userAnonymous, Groups: []string{groupUnauthenticated}}, nil
}
