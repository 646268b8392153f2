package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	celtypes "github.com/google/cel-go/common/types"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kontiki/apiserver/admission/dynamic"
)

// input is what expressions see.
type input struct {
	view      *dynamic.View
	request   *reviewv1.AdmissionRequest
	namespace *corev1.Namespace // nil for cluster-scoped objects
	known     plugincel.OptionalVariableBindings
}

// refusal is one validation that did not hold, or could not be evaluated.
type refusal struct {
	validation int // its index
	message    string
	reason     metav1.StatusReason
}

// outcome is what a policy says about a request, through one binding.
type outcome struct {
	refusals    []refusal
	annotations map[string]string
	failures    []string // of annotations, which refuse whatever the binding's actions
}

// evaluate asks a policy about a request.
func (p *validating) evaluate(ctx context.Context, in input) outcome {
	holds, err := p.conditions.Hold(ctx, in.view, in.known.VersionedParams, in.known.Authorizer)
	if err != nil {
		return p.failure(err)
	}
	if !holds {
		return outcome{}
	}
	results, budget, err := p.checks.ForInput(ctx, in.view, in.request, in.known, in.namespace, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return p.failure(err)
	}
	without := plugincel.OptionalVariableBindings{VersionedParams: in.known.VersionedParams}
	messages, _, messageErr := p.messages.ForInput(ctx, in.view, in.request, without, in.namespace, budget)
	var out outcome
	for i, result := range results {
		if r, refuses := p.judge(i, result, messages, messageErr); refuses {
			out.refusals = append(out.refusals, r)
		}
	}
	if err := p.annotate(ctx, in, &out); err != nil {
		return p.failure(err)
	}
	return out
}

// failure is the outcome of a policy that could not be evaluated as a whole.
func (p *validating) failure(err error) outcome {
	if p.ignore {
		return outcome{}
	}
	return outcome{refusals: []refusal{{message: err.Error()}}}
}

// judge says whether the result of a validation refuses. A message that cannot be made has others in its place, unless
// there was no budget for it.
func (p *validating) judge(i int, result plugincel.EvaluationResult, messages []plugincel.EvaluationResult, messageErr error) (refusal, bool) {
	switch {
	case result.Error != nil:
		return refusal{validation: i, message: result.Error.Error()}, !p.ignore
	case errors.Is(messageErr, apiservercel.ErrInternal) || errors.Is(messageErr, apiservercel.ErrOutOfBudget):
		return refusal{validation: i, message: fmt.Sprintf("failed messageExpression: %s", messageErr)}, !p.ignore
	case result.EvalResult == celtypes.True:
		return refusal{}, false
	}
	validation := &p.validations[i]
	out := refusal{validation: i, reason: metav1.StatusReasonInvalid, message: messageOf(validation, messages, i)}
	if validation.Reason != nil {
		out.reason = *validation.Reason
	}
	return out, true
}

// messageOf is what the message expression says, or the message, or the expression.
func messageOf(v *admissionv1.Validation, messages []plugincel.EvaluationResult, i int) string {
	if i < len(messages) && messages[i].Error == nil && messages[i].EvalResult != nil {
		text, _ := messages[i].EvalResult.Value().(string)
		text = strings.TrimSpace(text)
		if text != "" && len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes && !strings.Contains(text, "\n") {
			return text
		}
	}
	if text := strings.TrimSpace(v.Message); text != "" {
		return text
	}
	return "failed expression: " + strings.TrimSpace(v.Expression)
}

// maxAnnotationBytes bounds the value of an audit annotation.
const maxAnnotationBytes = 10 << 10

// annotate evaluates the audit annotations.
func (p *validating) annotate(ctx context.Context, in input, out *outcome) error {
	without := plugincel.OptionalVariableBindings{VersionedParams: in.known.VersionedParams, Authorizer: in.known.Authorizer}
	results, _, err := p.values.ForInput(ctx, in.view, in.request, without, in.namespace, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return err
	}
	for i, result := range results {
		if result.Error != nil {
			if !p.ignore {
				out.failures = append(out.failures, result.Error.Error())
			}
			continue
		}
		text, ok := result.EvalResult.Value().(string)
		if text = strings.TrimSpace(text); !ok || text == "" { // null
			continue
		}
		if out.annotations == nil {
			out.annotations = map[string]string{}
		}
		out.annotations[p.annotations[i].Key] = text[:min(len(text), maxAnnotationBytes)]
	}
	return nil
}
