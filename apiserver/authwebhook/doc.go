// Package authwebhook asks other servers who somebody is (TokenReview) and what they may do (SubjectAccessReview), as Kubernetes' webhook
// token authentication and webhook authorization do. Where such a server is, and how it is spoken to, says a kubeconfig file.
//
// Invariants:
//   - An answer that is not what was asked for is an error, and an error is never a yes: a token is refused, an action is decided by the
//     failure policy of the webhook.
//   - Answers are kept for a while, in a number that is bounded, under a digest: no token stays in memory.
//   - A call takes no longer than its timeout, retries included, and no more than 1 MiB of an answer is read.
//
// Read client.go first, then tokens.go and access.go.
package authwebhook
