package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
)

// Validator is the plugin ValidatingAdmissionPolicy.
func (p *Policies) Validator() admission.Validator { return validator{p} }

type validator struct{ p *Policies }

// denial is why a request is refused.
type denial struct {
	policy, binding string // no binding, if the policy itself is broken
	message         string
	reason          metav1.StatusReason
}

// verdicts is what all policies say about a request.
type verdicts struct {
	denials  []denial
	failures []failureNote
	values   map[string][]string // of audit annotations, by their key
}

// Validate implements admission.Validator. Of several denials the client sees the first.
func (v validator) Validate(ctx context.Context, r *admission.Request) error {
	if dynamic.Exempt(r) {
		return nil
	}
	now, err := v.p.current.Get(ctx)
	if err != nil || len(now.validating) == 0 {
		return err
	}
	met := invocations(ctx, v.p, r, now.validating, func(p *validating) *common { return &p.common })
	if len(met) == 0 {
		return nil
	}
	namespace, err := v.p.config.Matcher.Namespace(ctx, r)
	if err != nil {
		return err
	}
	all := verdicts{values: map[string][]string{}}
	views := dynamic.NewViews(r, v.p.config.Matcher.Versions)
	for _, one := range met {
		v.evaluate(ctx, r, one, views, namespace, &all)
	}
	all.note(r)
	if len(all.denials) > 0 {
		return byValidation(r, all.denials[0])
	}
	return nil
}

// evaluate adds the verdict of one policy through one binding.
func (v validator) evaluate(ctx context.Context, r *admission.Request, one invocation[*validating], views *dynamic.Views, namespace *corev1.Namespace, all *verdicts) {
	view, err := (*dynamic.View)(nil), one.err
	if err == nil {
		if view, err = views.As(one.match.Kind); err != nil {
			err = fmt.Errorf("failed to convert object version: %w", err)
		}
	}
	if err != nil {
		if !one.policy.ignore {
			all.deny(one, err.Error(), "")
		}
		return
	}
	outcome := one.policy.evaluate(ctx, input{
		view: view, namespace: plugincel.CreateNamespaceObject(namespace),
		request: plugincel.CreateAdmissionRequest(view.Attributes, metav1.GroupVersionResource(one.match.Resource), metav1.GroupVersionKind(one.match.Kind)),
		known:   plugincel.OptionalVariableBindings{VersionedParams: one.param, Authorizer: v.p.config.Authorizer},
	})
	for _, refusal := range outcome.refusals {
		v.act(r, one, refusal, all)
	}
	for _, failure := range outcome.failures {
		all.deny(one, failure, "")
	}
	for key, value := range outcome.annotations {
		key = one.policy.name + "/" + key
		if !slices.Contains(all.values[key], value) {
			all.values[key] = append(all.values[key], value)
		}
	}
}

// act does with a refusal what the binding says.
func (v validator) act(r *admission.Request, one invocation[*validating], refused refusal, all *verdicts) {
	for _, action := range one.binding.actions {
		switch action {
		case admissionv1.Deny:
			all.deny(one, refused.message, refused.reason)
		case admissionv1.Warn:
			r.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", one.policy.name, one.binding.name, refused.message))
		case admissionv1.Audit:
			all.failures = append(all.failures, failureNote{
				Message: refused.message, Policy: one.policy.name, Binding: one.binding.name,
				ExpressionIndex: refused.validation, ValidationActions: one.binding.actions,
			})
		}
	}
}

func (all *verdicts) deny(one invocation[*validating], message string, reason metav1.StatusReason) {
	d := denial{policy: one.policy.name, message: message, reason: reason}
	if one.binding != nil {
		d.binding = one.binding.name
	}
	all.denials = append(all.denials, d)
}

// failureNote is how an audit event tells of a validation that did not hold.
type failureNote struct {
	Message           string                         `json:"message"`
	Policy            string                         `json:"policy"`
	Binding           string                         `json:"binding"`
	ExpressionIndex   int                            `json:"expressionIndex"`
	ValidationActions []admissionv1.ValidationAction `json:"validationActions"`
}

// maxFailureNotes bounds how many an audit event tells of.
const maxFailureNotes = 50

// note tells the audit event.
func (all *verdicts) note(r *admission.Request) {
	for key, values := range all.values {
		r.Annotate(key, strings.Join(values, ", "))
	}
	if len(all.failures) == 0 {
		return
	}
	text, err := json.Marshal(all.failures[:min(len(all.failures), maxFailureNotes)])
	if err == nil { // strings and numbers can be written
		r.Annotate("validation.policy.admission.k8s.io/validation_failure", string(text))
	}
}

// internal is for what must not happen.
func internal(err error) error { return apierrors.NewInternalError(err) }
