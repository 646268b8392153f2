// Package tokens signs and reads the tokens of service accounts: JSON Web Tokens (RFC 7519) with the claims that Kubernetes
// puts into them, signed with ECDSA P-256 (ES256).
//
// A token says who its holder is (the account, by name and uid), where it is good (audiences), how long, and which object it
// ends with: a pod, a secret or a node. Whether these still exist is not known here; the API server looks (its accounttokens.go).
// The public keys are published for those who check tokens by themselves: OpenID Connect discovery, JSON Web Key Set.
//
// Invariants:
//   - Only ES256 is accepted: what a token says about its own algorithm decides nothing.
//   - A token is good for an audience only if it names it, and for nothing if its issuer is another.
//   - Errors do not contain the token, nor any part of it.
//
// Read issuer.go first.
package tokens
