package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
)

// call asks a hook about a request. The error is a refusal, which is an API status error, or a callError. What the hook says
// to the client and to the audit event is passed on, also with a refusal.
func (h *hook) call(ctx context.Context, r *admission.Request, match dynamic.Match, view *dynamic.View, mutating bool) (*admissionv1.AdmissionResponse, error) {
	if r.DryRun && !h.dryRunnable {
		return nil, noDryRun(h.name)
	}
	if h.version == "" {
		return nil, failed(h.name, "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)")
	}
	uid, question, err := newReview(h.version, r, match, view)
	if err != nil {
		return nil, failed(h.name, "could not create admission objects: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	body, err := h.client.ask(ctx, question)
	if err != nil {
		return nil, failed(h.name, "failed to call webhook: %w", err)
	}
	answer, err := readReview(h.version, uid, mutating, body)
	if err != nil {
		return nil, failed(h.name, "received invalid webhook response: %w", err)
	}
	for key, value := range answer.AuditAnnotations {
		r.Annotate(h.name+"/"+key, value)
	}
	for _, warning := range answer.Warnings {
		r.Warn(warning)
	}
	if !answer.Allowed {
		return nil, denied(h.name, answer.Result)
	}
	return answer, nil
}

// verdict turns the error of a call into that of the request: none, if the failure may be ignored.
func (w *Webhooks) verdict(ctx context.Context, h *hook, err error, failedOpen func()) error {
	if !isCallError(err) {
		return err
	}
	if !h.ignore {
		w.config.Log.Warn("a webhook failed, its request is refused", "webhook", h.name, "configuration", h.configuration, "err", err)
		return internal(err)
	}
	w.config.Log.Warn("a webhook failed, its request passes", "webhook", h.name, "configuration", h.configuration, "err", err)
	failedOpen()
	if ctx.Err() != nil { // not the hook's time was up, but the request's
		return timedOut()
	}
	return nil
}
