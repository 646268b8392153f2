// Package oidc knows users by the JSON Web Tokens of other issuers: companies' identity providers, clouds, CI systems. Which ones, and what
// their claims mean, says the AuthenticationConfiguration of Kubernetes (apiserver.config.k8s.io/v1), whose CEL expressions run in
// Kubernetes' own environment (k8s.io/apiserver/pkg/authentication/cel).
//
// An issuer's keys are fetched when its first token comes (OpenID Connect Discovery 1.0, RFC 7517), and again when a token names a key
// that is not among them, at most every ten seconds, and every hour. So a new key works at once, and one that the issuer has taken
// back stops to work within the hour. While an issuer cannot be reached the keys that are known go on to count.
//
// Invariants:
//   - A token is judged only by the issuer that it names, and only if that is one of the configuration.
//   - The algorithm is one of the nine asymmetric ones, and fits the key; "none" and shared secrets are never accepted.
//   - Keys come over TLS, from the authority that the configuration names, redirections included.
//   - Errors do not contain the token, nor any part of its signature.
//
// Not supported: distributed claims (_claim_names), egress selectors.
//
// Read authenticator.go first, then keys.go.
package oidc
