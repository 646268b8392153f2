package tokens

import (
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// LegacyIssuer is the issuer of tokens that are kept in Secrets of type kubernetes.io/service-account-token. They do not expire: such a token
// is good for as long as its Secret has it, and for no audience but the API server.
const LegacyIssuer = "kubernetes/serviceaccount"

// Legacy is what such a token says.
type Legacy struct {
	jwt.RegisteredClaims
	Namespace   string `json:"kubernetes.io/serviceaccount/namespace"`
	Secret      string `json:"kubernetes.io/serviceaccount/secret.name"`
	AccountName string `json:"kubernetes.io/serviceaccount/service-account.name"`
	AccountUID  string `json:"kubernetes.io/serviceaccount/service-account.uid"`
}

// Validate implements jwt.ClaimsValidator.
func (l *Legacy) Validate() error {
	namespace, name, ok := Account(l.Subject)
	if !ok || l.AccountUID == "" || l.Secret == "" || namespace != l.Namespace || name != l.AccountName {
		return errors.New("subject and service account differ")
	}
	return nil
}

// SignLegacy makes the token that a Secret is to have.
func (i *Issuer) SignLegacy(namespace, secret string, account Object) (string, error) {
	return i.signed(&Legacy{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: LegacyIssuer, Subject: Subject(namespace, account.Name)},
		Namespace:        namespace, Secret: secret, AccountName: account.Name, AccountUID: account.UID,
	})
}

// VerifyLegacy reads a token of a Secret; whether the Secret still has it is for the caller to find out. The error is ErrInvalid.
func (i *Issuer) VerifyLegacy(token string) (*Legacy, error) {
	if len(token) > maxTokenBytes {
		return nil, ErrInvalid
	}
	claims := &Legacy{}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodES256.Alg()}), jwt.WithIssuer(LegacyIssuer),
		jwt.WithTimeFunc(i.config.Now), jwt.WithStrictDecoding())
	if _, err := parser.ParseWithClaims(token, claims, i.keyOf); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, reasonOf(err))
	}
	return claims, nil
}
