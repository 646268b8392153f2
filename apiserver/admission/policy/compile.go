package policy

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"

	"kontiki/apiserver/admission/dynamic"
	"kontiki/apiserver/admission/expression"
)

// common is what policies of both kinds have, compiled. It is never changed.
type common struct {
	name       string
	ignore     bool                     // failures do not refuse
	params     *schema.GroupVersionKind // of the parameters; nil if there are none
	criteria   *dynamic.Criteria
	conditions *dynamic.Conditions
	broken     error // why the policy cannot be used
}

// validating is a ValidatingAdmissionPolicy.
type validating struct {
	common
	validations []admissionv1.Validation
	annotations []admissionv1.AuditAnnotation

	checks, messages, values plugincel.ConditionEvaluator // of validations and annotations, in their order
}

// mutating is a MutatingAdmissionPolicy.
type mutating struct {
	common
	reinvoke bool // evaluated again when others have changed the object
	patches  []patch.Patcher
	compiler *expression.Compiler // which knows the variables
}

func compileCommon(name string, failure *admissionv1.FailurePolicyType, params *admissionv1.ParamKind, match *admissionv1.MatchResources) common {
	c := common{name: name, ignore: failure != nil && *failure == admissionv1.Ignore}
	if c.criteria, c.broken = dynamic.ForPolicy(match); c.broken != nil {
		c.criteria = &dynamic.Criteria{}
	}
	if params != nil {
		gv, err := schema.ParseGroupVersion(params.APIVersion)
		if err != nil {
			c.broken = fmt.Errorf("failed to parse paramKind APIVersion: %w", err)
		}
		kind := gv.WithKind(params.Kind)
		c.params = &kind
	}
	return c
}

// compiler makes a compiler that knows the variables. Those that do not compile fail where they are used.
func newCompiler(variables []admissionv1.Variable, known expression.Variables) (*expression.Compiler, error) {
	compiler, err := expression.NewCompiler()
	if err != nil {
		return nil, err
	}
	for _, v := range variables {
		_ = compiler.Define(expression.Variable(v.Name, v.Expression), known)
	}
	return compiler, nil
}

func compileValidating(p *admissionv1.ValidatingAdmissionPolicy) *validating {
	s := &p.Spec
	out := &validating{
		common:      compileCommon(p.Name, s.FailurePolicy, s.ParamKind, s.MatchConstraints),
		validations: s.Validations, annotations: s.AuditAnnotations,
	}
	known := expression.Variables{HasParams: s.ParamKind != nil, HasAuthorizer: true}
	compiler, err := newCompiler(s.Variables, known)
	if err != nil {
		out.broken = err
		return out
	}
	out.conditions = dynamic.PolicyConditions(compiler, s.MatchConditions, known, s.FailurePolicy, p.Name)
	checks, messages, values := make([]plugincel.ExpressionAccessor, len(s.Validations)), make([]plugincel.ExpressionAccessor, len(s.Validations)), make([]plugincel.ExpressionAccessor, len(s.AuditAnnotations))
	for i, v := range s.Validations {
		checks[i] = expression.Condition(v.Expression)
		if v.MessageExpression != "" {
			messages[i] = expression.Message(v.MessageExpression)
		}
	}
	for i, a := range s.AuditAnnotations {
		values[i] = expression.AuditValue(a.Key, a.ValueExpression)
	}
	out.checks, out.values = compiler.Conditions(checks, known), compiler.Conditions(values, known)
	out.messages = compiler.Conditions(messages, expression.Variables{HasParams: known.HasParams}) // which may not ask who may what
	return out
}

func compileMutating(p *admissionv1.MutatingAdmissionPolicy) *mutating {
	s := &p.Spec
	out := &mutating{
		common:   compileCommon(p.Name, s.FailurePolicy, s.ParamKind, s.MatchConstraints),
		reinvoke: s.ReinvocationPolicy == admissionv1.IfNeededReinvocationPolicy,
	}
	known := expression.Variables{HasParams: s.ParamKind != nil, HasAuthorizer: true}
	compiler, err := newCompiler(s.Variables, known)
	if err != nil {
		out.broken = err
		return out
	}
	out.compiler = compiler
	out.conditions = dynamic.PolicyConditions(compiler, s.MatchConditions, known, s.FailurePolicy, p.Name)
	for _, m := range s.Mutations {
		switch {
		case m.PatchType == admissionv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			out.patches = append(out.patches, patch.NewJSONPatcher(compiler.Patch(expression.JSONPatch(m.JSONPatch.Expression), known)))
		case m.PatchType == admissionv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			out.patches = append(out.patches, patch.NewApplyConfigurationPatcher(compiler.Patch(expression.ApplyConfiguration(m.ApplyConfiguration.Expression), known)))
		}
	}
	return out
}

// binding puts a policy to use, compiled.
type binding struct {
	name     string
	criteria *dynamic.Criteria
	ref      *admissionv1.ParamRef
	actions  []admissionv1.ValidationAction
	broken   error
}

func compileBinding(name string, match *admissionv1.MatchResources, ref *admissionv1.ParamRef, actions []admissionv1.ValidationAction) *binding {
	b := &binding{name: name, ref: ref, actions: actions}
	if b.criteria, b.broken = dynamic.ForPolicy(match); b.broken != nil {
		b.criteria = &dynamic.Criteria{}
	}
	return b
}
