package oidc

import "errors"

var (
	// ErrInvalid is a token of a known issuer that is not good: not signed by it, over, for another audience, or refused by a rule.
	ErrInvalid = errors.New("invalid token")
	// ErrKeys is an issuer whose keys cannot be fetched.
	ErrKeys = errors.New("keys of the issuer cannot be fetched")
)
