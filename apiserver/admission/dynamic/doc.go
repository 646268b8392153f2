// Package dynamic is what the parts of admission have in common that the cluster's own objects configure: webhooks
// (apiserver/admission/webhook) and policies (apiserver/admission/policy). Both pick requests by rules, selectors and match
// conditions, and both see a request in the API version that their rules name, whichever version it was made in
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/).
//
//	criteria.go    which requests: rules and selectors
//	matcher.go     the request against the criteria; matchPolicy Equivalent
//	conditions.go  matchConditions
//	views.go       a request in another version, and as CEL sees it
//	exempt.go      what webhooks and policies never see
//
// Read criteria.go first.
//
// Invariants:
//   - Criteria and Conditions are compiled once, when their object is taken into use, and are safe for concurrent use.
//   - A request that matches nothing costs no conversion, no look-up and no allocation beyond a few comparisons.
package dynamic
