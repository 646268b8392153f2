package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/apiserver/tokens"
)

// User is who makes a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	// Extra says more about the user, or about the credential that was shown, by key.
	Extra map[string][]string
}

// credentialID is the key of Extra that tells which certificate or token the user has shown.
const credentialID = "authentication.kubernetes.io/credential-id"

// The groups and names that the authorizer knows.
const (
	userAnonymous = "system:anonymous"

	groupMasters         = "system:masters"
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
)

var anonymous = User{Name: userAnonymous, Groups: []string{groupUnauthenticated}}

func (u User) in(group string) bool { return slices.Contains(u.Groups, group) }

// info is the user as API objects name them.
func (u User) info() authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// userOf is the reverse of info.
func userOf(info authenticationv1.UserInfo) User {
	user := User{Name: info.Username, UID: info.UID, Groups: info.Groups}
	for key, values := range info.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[key] = values
	}
	return user
}

// withAuthentication finds out who asks, by the client certificate or by the token of a service account. Without either
// the user is anonymous, whom the authorizer lets see health and version and nothing else. A credential that is wrong is
// an error, whatever could be seen without it.
//
// Not yet: OpenID Connect issuers, the front proxy, webhooks.
func (s *Server) withAuthentication(next http.Handler) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		user, err := s.authenticate(r)
		if err != nil {
			s.auditRefused(r, err)
			return err
		}
		r.Header.Del("Authorization") // it has done its work: nothing behind can pass it on, to a pod for one, or write it down
		factsOf(r.Context()).user = user
		next.ServeHTTP(w, r)
		return nil
	})
}

func (s *Server) authenticate(r *http.Request) (User, error) {
	if user, ok := certificateUser(r); ok {
		return user, nil
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return anonymous, nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return User{}, apierrors.NewUnauthorized("Unauthorized")
	}
	user, _, err := s.tokenUser(r.Context(), strings.TrimSpace(token), nil)
	if errors.Is(err, tokens.ErrInvalid) {
		s.log.DebugContext(r.Context(), "a token was refused", "err", err)
		return User{}, unauthorized(err)
	}
	return user, err
}

// certificateUser: the TLS handshake has verified the client certificate against the cluster CA and its validity period
// (tls.VerifyClientCertIfGiven); its common name is the user and its organizations are the groups, as in Kubernetes.
func certificateUser(r *http.Request) (User, bool) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return User{}, false
	}
	certificate := r.TLS.VerifiedChains[0][0]
	subject := certificate.Subject
	if subject.CommonName == "" {
		return User{}, false
	}
	sum := sha256.Sum256(certificate.Raw)
	return User{
		Name:   subject.CommonName,
		Groups: append(slices.Clone(subject.Organization), groupAuthenticated),
		Extra:  map[string][]string{credentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}, true
}
