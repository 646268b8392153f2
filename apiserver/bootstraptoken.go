package apiserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/apiserver/tokens"
	"kontiki/internal/bootstraptoken"
)

// expiredToken is the error for a bootstrap token, by name, that was good once. Who has its secret part is told.
type expiredToken string

func (e expiredToken) Error() string { return "bootstrap token " + string(e) + " has expired" }

func (expiredToken) Unwrap() error { return tokens.ErrInvalid }

// unauthorized is what somebody is told whose token is not good.
func unauthorized(err error) error {
	var expired expiredToken
	if errors.As(err, &expired) {
		return apierrors.NewUnauthorized(expired.Error())
	}
	return apierrors.NewUnauthorized("Unauthorized")
}

// bootstrapTokenUser finds out whom a bootstrap token stands for, and for which of the audiences it is good: the API
// server alone. The error is tokens.ErrInvalid.
func (s *Server) bootstrapTokenUser(ctx context.Context, text string, audiences []string) (User, []string, error) {
	shown, err := bootstraptoken.Parse(text)
	if err != nil {
		return User{}, nil, fmt.Errorf("%w: %w", tokens.ErrInvalid, err)
	}
	found, err := s.find(ctx, secrets, bootstraptoken.Namespace, shown.SecretName())
	if apierrors.IsNotFound(err) {
		return User{}, nil, fmt.Errorf("%w: there is no bootstrap token %s", tokens.ErrInvalid, shown.ID)
	}
	if err != nil {
		return User{}, nil, err
	}
	secret := found.(*corev1.Secret)
	held, spec, err := bootstraptoken.FromSecret(secret)
	if err != nil || secret.DeletionTimestamp != nil {
		return User{}, nil, fmt.Errorf("%w: the secret of bootstrap token %s: %v", tokens.ErrInvalid, shown.ID, err)
	}
	if subtle.ConstantTimeCompare([]byte(held.Secret), []byte(shown.Secret)) != 1 {
		return User{}, nil, fmt.Errorf("%w: the secret part of bootstrap token %s is another", tokens.ErrInvalid, shown.ID)
	}
	if spec.Over(time.Now()) {
		return User{}, nil, expiredToken(shown.ID)
	}
	if !spec.Authentication {
		return User{}, nil, fmt.Errorf("%w: bootstrap token %s is not for authentication", tokens.ErrInvalid, shown.ID)
	}
	own := s.tokens.URL()
	if len(audiences) > 0 && !slices.Contains(audiences, own) {
		return User{}, nil, fmt.Errorf("%w: it is for another audience", tokens.ErrInvalid)
	}
	return User{
		Name:   bootstraptoken.UserPrefix + shown.ID,
		Groups: append([]string{bootstraptoken.Group, groupAuthenticated}, spec.Groups...),
	}, []string{own}, nil
}
