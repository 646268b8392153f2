package apiserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"kontiki/apiserver/audit"
	"kontiki/apiserver/rbac"
	"kontiki/apiserver/tokens"
)

// maxImpersonationValues bounds the groups and extra values of one request, each of which is a question to the authorizer.
const maxImpersonationValues = 128

// withImpersonation lets whoever may be somebody else ask to be.
func (s *Server) withImpersonation(next http.Handler) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		facts := factsOf(r.Context())
		user, err := s.impersonate(r, facts.user)
		if err != nil {
			return err
		}
		facts.user = user
		next.ServeHTTP(w, r)
		return nil
	})
}

// impersonate returns who a request wants to be done as, if the user may be each part of it: user, group, uid, and every
// value of extra (authentication.k8s.io/v1 ImpersonateUserHeader and its siblings; kubectl --as).
func (s *Server) impersonate(r *http.Request, user User) (User, error) {
	wanted, parts, err := impersonation(r.Header)
	for header := range r.Header {
		if plain := strings.ReplaceAll(header, "_", "-"); strings.HasPrefix(strings.ToLower(plain), "impersonate-") {
			delete(r.Header, header)
		}
	}
	if err != nil || len(parts) == 0 {
		return user, err
	}
	for _, part := range parts {
		part.Verb = "impersonate"
		if reason, ok := s.authorize(r.Context(), user, part); !ok {
			return user, refuse(user, part, reason)
		}
	}
	audit.RecordOf(r.Context()).Impersonated(wanted.info())
	return wanted, nil
}

// impersonation reads the headers: who is wanted, and what must be allowed for it.
func impersonation(header http.Header) (User, []rbac.Request, error) {
	name := header.Get(authenticationv1.ImpersonateUserHeader)
	user := User{Name: name, UID: header.Get(authenticationv1.ImpersonateUIDHeader), Groups: slices.Clone(header.Values(authenticationv1.ImpersonateGroupHeader)), Extra: map[string][]string{}}
	var parts []rbac.Request
	ask := func(group, resource, sub, value string) {
		parts = append(parts, rbac.Request{Group: group, Resource: resource, Subresource: sub, Name: value})
	}
	namespace, accountName, account := tokens.Account(name)
	if account {
		parts = append(parts, rbac.Request{Resource: "serviceaccounts", Namespace: namespace, Name: accountName})
	} else if name != "" {
		ask("", "users", "", name)
	}
	for _, g := range user.Groups {
		ask("", "groups", "", g)
	}
	if user.UID != "" {
		ask(authenticationv1.GroupName, "uids", "", user.UID)
	}
	for key, values := range header {
		key, ok := strings.CutPrefix(key, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key = strings.ToLower(key)
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		user.Extra[key] = append(user.Extra[key], values...)
		for _, v := range values {
			ask(authenticationv1.GroupName, "userextras", key, v)
		}
	}
	switch {
	case len(parts) > maxImpersonationValues:
		return user, nil, badRequest("at most %d groups and extra values can be impersonated in one request", maxImpersonationValues)
	case len(parts) > 0 && name == "":
		return user, nil, badRequest("requested %v without impersonating a user", parts[0].Resource)
	}
	return withImpliedGroups(user), parts, nil
}

// withImpliedGroups adds the groups that such a user has when they come by themselves.
func withImpliedGroups(user User) User {
	if user.Name == userAnonymous {
		if !slices.Contains(user.Groups, groupUnauthenticated) {
			user.Groups = append(user.Groups, groupUnauthenticated)
		}
		return user
	}
	if namespace, _, ok := tokens.Account(user.Name); ok && len(user.Groups) == 0 {
		user.Groups = accountUser(user.Name, namespace, "").Groups
	}
	return user.authenticated()
}
