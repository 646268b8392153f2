// Package webhook asks servers of the cluster's users about requests: the plugins MutatingAdmissionWebhook and
// ValidatingAdmissionWebhook, which follow the objects MutatingWebhookConfiguration and ValidatingWebhookConfiguration
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/).
//
//	hooks.go     the two plugins, and the hooks that are in use
//	hook.go      one webhook, compiled; which requests it is for
//	mutate.go    mutating hooks one after the other; patches
//	validate.go  validating hooks all at once
//	call.go      one call: dry run, time, what the answer says
//	review.go    AdmissionReview out and in
//	client.go    HTTP; clients.go: connections outlive changes of the configuration
//	errors.go    refused, or not asked
//
// Limits: a hook has its timeoutSeconds, but no longer than the request; an answer is at most 8 MiB; redirects are not
// followed, and there are no proxies on the way. Hooks are asked over HTTP/1.1, so that the endpoints of a Service share the work.
//
// Read hook.go first, then call.go.
//
// Invariants:
//   - No request passes before the hooks have been read once.
//   - A hook that is not asked, or answers nonsense, refuses the request unless its failurePolicy is Ignore.
//   - The answer of a hook changes nothing but the object, the warnings and the audit annotations of the request.
//
// Not yet: client certificates and tokens for webhooks (--admission-control-config-file), patches in audit events.
package webhook
