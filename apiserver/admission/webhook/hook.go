package webhook

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
)

// defaultTimeout is that of a hook which says none.
const defaultTimeout = 10 * time.Second

// hook is one webhook of a configuration, compiled. It is never changed.
type hook struct {
	configuration, name string
	key                 string // tells it from all others

	criteria   *dynamic.Criteria
	conditions *dynamic.Conditions
	broken     error // why the criteria could not be compiled: then it matches nothing but the failure policy

	client      *client
	version     string // of the AdmissionReview: "v1", or "v1beta1"; empty if the hook knows none of ours
	timeout     time.Duration
	ignore      bool // a failure is no refusal
	dryRunnable bool
	reinvoke    bool // asked again when others have changed the object
}

// hooksOf compiles the webhooks of one configuration.
func hooksOf(configuration string, list []admissionv1.MutatingWebhook, clients *clients) []*hook {
	out := make([]*hook, len(list))
	seen := map[string]int{}
	for i := range list {
		name := list[i].Name
		out[i] = newHook(configuration, &list[i], clients)
		out[i].key = fmt.Sprintf("%s/%s/%d", configuration, name, seen[name])
		seen[name]++
	}
	return out
}

func newHook(configuration string, w *admissionv1.MutatingWebhook, clients *clients) *hook {
	h := &hook{
		configuration: configuration, name: w.Name, client: clients.get(&w.ClientConfig), timeout: defaultTimeout,
		ignore:      w.FailurePolicy != nil && *w.FailurePolicy == admissionv1.Ignore,
		dryRunnable: w.SideEffects != nil && (*w.SideEffects == admissionv1.SideEffectClassNone || *w.SideEffects == admissionv1.SideEffectClassNoneOnDryRun),
		reinvoke:    w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == admissionv1.IfNeededReinvocationPolicy,
	}
	if w.TimeoutSeconds != nil {
		h.timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	for _, version := range w.AdmissionReviewVersions {
		if version == "v1" || version == "v1beta1" {
			h.version = version
			break
		}
	}
	h.criteria, h.broken = dynamic.ForWebhook(w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector)
	h.conditions = dynamic.WebhookConditions(w.MatchConditions, w.FailurePolicy, w.Name)
	return h
}

// asMutating is a validating webhook as the other kind, which has all of its fields.
func asMutating(list []admissionv1.ValidatingWebhook) []admissionv1.MutatingWebhook {
	out := make([]admissionv1.MutatingWebhook, len(list))
	for i, w := range list {
		out[i] = admissionv1.MutatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
		}
	}
	return out
}

// match says whether the hook is to be asked about a request, and as what it sees it. The error is an API status error.
func (h *hook) match(ctx context.Context, w *Webhooks, r *admission.Request, views *dynamic.Views) (*dynamic.View, dynamic.Match, bool, error) {
	if h.broken != nil {
		return nil, dynamic.Match{}, false, internal(h.broken)
	}
	match, ok, err := w.config.Matcher.Match(ctx, r, h.criteria)
	if err != nil || !ok {
		return nil, match, false, err
	}
	view, err := views.As(match.Kind)
	if err != nil {
		return nil, match, false, internal(err)
	}
	holds, err := h.conditions.Hold(ctx, view, nil, w.config.Authorizer)
	if err != nil {
		return nil, match, false, notDecided(r, err)
	}
	return view, match, holds, nil
}
