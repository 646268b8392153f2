package apiserver

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/apiserver/oidc"
	"kontiki/apiserver/tokens"
	"kontiki/internal/bootstraptoken"
)

// A tokenKind knows the tokens of one kind. known is false if the token is of another kind; then nothing else is set. An error that is
// tokens.ErrInvalid says why the token is nobody's; others that this cannot be found out now. good are those of the audiences that the
// token is for; no audiences means this API server.
type tokenKind func(ctx context.Context, token string, audiences []string) (user User, good []string, known bool, err error)

// tokenKinds are asked in this order: those that are judged here first, those that others are asked about last.
func (s *Server) tokenKinds() []tokenKind {
	return []tokenKind{s.accountToken, s.bootstrapToken, s.legacyToken, s.issuersToken, s.webhookToken}
}

// bearer is who shows a token in a request.
func (s *Server) bearer(ctx context.Context, token string) (User, error) {
	user, _, err := s.tokenUser(ctx, token, nil)
	if errors.Is(err, tokens.ErrInvalid) {
		s.log.DebugContext(ctx, "a token was refused", "err", err)
		return User{}, unauthorized(err)
	}
	return user, err
}

// tokenUser finds out whose token it is, and for which of the audiences it is good. The error is tokens.ErrInvalid for a token that is
// nobody's.
func (s *Server) tokenUser(ctx context.Context, token string, audiences []string) (User, []string, error) {
	for _, kind := range s.tokenKinds() {
		user, good, known, err := kind(ctx, token, audiences)
		if known {
			return user.authenticated(), good, err
		}
	}
	return User{}, nil, fmt.Errorf("%w: nobody here issues such tokens", tokens.ErrInvalid)
}

// accountToken knows the tokens that this cluster signs, and that end.
func (s *Server) accountToken(ctx context.Context, token string, audiences []string) (user User, good []string, known bool, err error) {
	if oidc.IssuerOf(token) != s.tokens.URL() {
		return user, nil, false, nil
	}
	claims, good, err := s.tokens.Verify(token, audiences)
	if err != nil {
		return user, nil, true, err
	}
	k := &claims.Kubernetes
	if err := s.stillThere(ctx, k); err != nil {
		return user, nil, true, err
	}
	user = accountUser(claims.Subject, k.Namespace, k.ServiceAccount.UID)
	user.Extra = map[string][]string{credentialID: {"JTI=" + claims.ID}}
	for _, bound := range []struct {
		*tokens.Object
		name, uid string
	}{{k.Pod, extraPodName, extraPodUID}, {k.Node, extraNodeName, extraNodeUID}} {
		if bound.Object != nil {
			user.Extra[bound.name] = []string{bound.Name}
			if bound.UID != "" {
				user.Extra[bound.uid] = []string{bound.UID}
			}
		}
	}
	return user, good, true, nil
}

func accountUser(name, namespace, uid string) User {
	return User{Name: name, UID: uid, Groups: []string{groupServiceAccounts, groupServiceAccountsPrefix + namespace}}
}

// bootstrapToken knows the tokens with which machines join.
func (s *Server) bootstrapToken(ctx context.Context, token string, audiences []string) (user User, good []string, known bool, err error) {
	if !bootstraptoken.Is(token) {
		return user, nil, false, nil
	}
	user, good, err = s.bootstrapTokenUser(ctx, token, audiences)
	return user, good, true, err
}

// legacyToken knows the tokens that are kept in Secrets. Such a token is good for as long as its Secret and its account are there, and
// nobody has marked the Secret as no longer in use.
func (s *Server) legacyToken(ctx context.Context, token string, audiences []string) (user User, good []string, known bool, err error) {
	if oidc.IssuerOf(token) != tokens.LegacyIssuer {
		return user, nil, false, nil
	}
	claims, err := s.tokens.VerifyLegacy(token)
	if err != nil {
		return user, nil, true, err
	}
	if good, err = s.ownAudiences(audiences); err != nil {
		return user, nil, true, err
	}
	found, err := s.find(ctx, secrets, claims.Namespace, claims.Secret)
	if apierrors.IsNotFound(err) {
		return user, nil, true, errTokenOver
	}
	if err != nil {
		return user, nil, true, err
	}
	secret, ok := found.(*corev1.Secret)
	if !ok || secret.DeletionTimestamp != nil || string(secret.Data[corev1.ServiceAccountTokenKey]) != token || secret.Labels[invalidSinceLabel] != "" {
		return user, nil, true, errTokenOver
	}
	if err := s.sameObject(ctx, serviceAccounts, claims.Namespace, &tokens.Object{Name: claims.AccountName, UID: claims.AccountUID}); err != nil {
		return user, nil, true, err
	}
	return accountUser(claims.Subject, claims.Namespace, claims.AccountUID), good, true, nil
}

// invalidSinceLabel marks the Secret of a token that has not been used for long (KEP-2799): the token no longer works.
const invalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"

// ownAudiences are those of the audiences that are this API server, for tokens that name none of their own.
func (s *Server) ownAudiences(audiences []string) ([]string, error) {
	claims := tokens.Claims{}
	claims.Audience = []string{s.tokens.URL()}
	return claims.GoodFor(audiences, s.tokens.URL())
}

// issuersToken knows the tokens of the issuers that the configuration names (package oidc).
func (s *Server) issuersToken(ctx context.Context, token string, audiences []string) (user User, good []string, known bool, err error) {
	info, known, err := s.judges.Load().issuers.Authenticate(ctx, token)
	if err == nil && known {
		good, err = s.ownAudiences(audiences)
	}
	if err != nil {
		return user, nil, known, fmt.Errorf("%w: %w", tokens.ErrInvalid, err)
	}
	return userOf(info), good, known, nil
}
