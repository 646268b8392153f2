package dynamic

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"kontiki/apiserver/admission/expression"
)

// Authorizer is what expressions ask through the variable "authorizer".
type Authorizer = authorizer.UnconditionalAuthorizer

// Conditions are the compiled matchConditions of a webhook or policy. Nil holds always.
type Conditions struct {
	matcher matchconditions.Matcher
}

// compileFunc compiles expressions that are evaluated together.
type compileFunc func(texts []plugincel.ExpressionAccessor) plugincel.ConditionEvaluator

// WebhookConditions compiles those of a webhook, whose expressions stand alone.
func WebhookConditions(list []admissionv1.MatchCondition, failure *admissionv1.FailurePolicyType, webhook string) *Conditions {
	return conditions(list, failure, webhook, func(texts []plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		results := make([]plugincel.CompilationResult, len(texts))
		for i, text := range texts {
			results[i] = expression.Shared().CompileCELExpression(text, expression.Variables{HasAuthorizer: true}, environment.StoredExpressions)
		}
		return plugincel.NewCondition(results)
	})
}

// PolicyConditions compiles those of a policy, which may use its variables and parameters.
func PolicyConditions(compiler *expression.Compiler, list []admissionv1.MatchCondition, known expression.Variables, failure *admissionv1.FailurePolicyType, policy string) *Conditions {
	return conditions(list, failure, policy, func(texts []plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		return compiler.Conditions(texts, known)
	})
}

func conditions(list []admissionv1.MatchCondition, failure *admissionv1.FailurePolicyType, name string, compile compileFunc) *Conditions {
	if len(list) == 0 {
		return nil
	}
	texts := make([]plugincel.ExpressionAccessor, len(list))
	for i := range list {
		texts[i] = (*matchconditions.MatchCondition)(&list[i])
	}
	return &Conditions{matchconditions.NewMatcher(compile(texts), failure, "", "", name)}
}

// Hold evaluates the conditions. One that is false decides; otherwise one that fails is an error, or, where failures are to
// be ignored, the conditions do not hold.
func (c *Conditions) Hold(ctx context.Context, view *apiadmission.VersionedAttributes, param runtime.Object, authorizer Authorizer) (bool, error) {
	if c == nil {
		return true, nil
	}
	result := c.matcher.Match(ctx, view, param, authorizer)
	return result.Matches, result.Error
}
