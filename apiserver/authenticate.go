package apiserver

import (
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// authenticated returns the user with the group that everybody is in who is known.
func (u User) authenticated() User {
	if u.Name != userAnonymous && !u.in(groupAuthenticated) && !u.in(groupUnauthenticated) {
		u.Groups = append(slices.Clip(u.Groups), groupAuthenticated)
	}
	return u
}

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

var errUnauthorized = apierrors.NewUnauthorized("Unauthorized")

// withAuthentication finds out who asks: by the headers of the front proxy, by the client certificate, or by a token
// (tokenuser.go). Without any of them the user is anonymous, where that is allowed (AccessConfig.AnonymousPaths), else the answer is 401.
// A credential that is wrong is an error, whatever could be seen without it.
//
// Nothing behind this stage sees a credential, or a header that claims who somebody is: it could pass it on, to a pod for one, or write it
// down.
func (s *Server) withAuthentication(next http.Handler) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		user, err := s.authenticate(r)
		if err != nil {
			s.auditRefused(r, err)
			return err
		}
		r.Header.Del("Authorization")
		dropSocketTokens(r.Header)
		s.frontProxy.Strip(r.Header)
		factsOf(r.Context()).user = user
		next.ServeHTTP(w, r)
		return nil
	})
}

func (s *Server) authenticate(r *http.Request) (User, error) {
	if user, ok := s.certificateUser(r); ok {
		return user, nil
	}
	token, err := shownToken(r)
	switch {
	case err != nil:
		return User{}, err
	case token != "":
		return s.bearer(r.Context(), token)
	case !s.anonymousMay(r.URL.Path):
		return User{}, errUnauthorized
	}
	return anonymous, nil
}

// anonymousMay says whether a path can be asked for without saying who one is.
func (s *Server) anonymousMay(path string) bool {
	if paths := s.judges.Load().anonymousPaths; paths != nil {
		return slices.Contains(paths, "*") || slices.Contains(paths, path)
	}
	return slices.Contains(publicPaths, healthRoot(path))
}

// certificateUser: the TLS handshake has verified the client certificate against the cluster CA or that of the front proxy
// (tls.VerifyClientCertIfGiven). Under the cluster CA its common name is the user and its organizations are the groups, as in Kubernetes;
// the front proxy says by headers who it speaks for. A connection may outlive its certificate, but not speak with it.
func (s *Server) certificateUser(r *http.Request) (User, bool) {
	if r.TLS == nil {
		return User{}, false
	}
	for _, chain := range r.TLS.VerifiedChains {
		if time.Now().After(chain[0].NotAfter) {
			continue
		}
		if s.frontProxy.Believed(chain) {
			if info, ok := s.frontProxy.User(r.Header); ok {
				return userOf(info).authenticated(), true
			}
		}
		subject := chain[0].Subject
		if !s.frontProxy.MayBeUser(chain) || subject.CommonName == "" {
			continue
		}
		return User{
			Name:   subject.CommonName,
			Groups: slices.Clone(subject.Organization),
			Extra:  map[string][]string{credentialID: {"X509SHA256=" + fingerprint(r.Context(), chain[0])}},
		}.authenticated(), true
	}
	return User{}, false
}

// shownToken is the token of a request; empty if there is none. A browser, which cannot set headers of a WebSocket, sends it in a
// subprotocol (watchsocket.go).
func shownToken(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	switch {
	case len(headers) == 0:
		return socketToken(r)
	case len(headers) > 1: // who came before us may have looked at another one
		return "", errUnauthorized
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", errUnauthorized
	}
	return token, nil
}
