package registry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kontiki/apiserver/admission/expression"
)

// expressions judges the CEL of one policy.
type expressions struct {
	params   bool                 // the policy has parameters
	compiler *expression.Compiler // nil if the policy has no variables
}

// check compiles an expression. The fault quotes text.
func (e expressions) check(path *field.Path, text string, accessor plugincel.ExpressionAccessor, authorizer, patches bool) field.ErrorList {
	known := expression.Variables{HasParams: e.params, HasAuthorizer: authorizer, HasPatchTypes: patches}
	compile := expression.Check
	if e.compiler != nil {
		compile = e.compiler.Check
	}
	if err := compile(accessor, known); err != nil {
		return field.ErrorList{expression.Fault(path, text, err)}
	}
	return nil
}

// celName is what a variable may be called.
var celName = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// celReserved are words that cannot be names.
var celReserved = []string{
	"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
	"loop", "package", "namespace", "return", "var", "void", "while",
}

// judgeVariables judges the variables of a policy in their order, since each may use those before it, and makes them known
// to what is judged next.
func judgeVariables(variables []admissionv1.Variable, params bool) (expressions, field.ErrorList) {
	e := expressions{params: params}
	var faults field.ErrorList
	if len(variables) > 0 {
		var err error
		if e.compiler, err = expression.NewChecker(); err != nil {
			return e, field.ErrorList{field.InternalError(specPath.Child("variables"), err)}
		}
	}
	for i, v := range variables {
		at := specPath.Child("variables").Index(i)
		switch {
		case strings.TrimSpace(v.Name) == "":
			faults = append(faults, field.Required(at.Child("name"), "name is not specified"))
		case !celName.MatchString(v.Name) || slices.Contains(celReserved, v.Name):
			faults = append(faults, field.Invalid(at.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		if strings.TrimSpace(v.Expression) == "" {
			faults = append(faults, field.Required(at.Child("expression"), "expression is not specified"))
			continue
		}
		if err := e.compiler.Define(expression.Variable(v.Name, v.Expression), expression.Variables{HasParams: params, HasAuthorizer: true}); err != nil {
			faults = append(faults, expression.Fault(at.Child("expression"), v.Expression, err))
		}
	}
	return e, faults
}

func (e expressions) validation(path *field.Path, v *admissionv1.Validation) field.ErrorList {
	var faults field.ErrorList
	if strings.TrimSpace(v.Expression) == "" {
		faults = append(faults, field.Required(path.Child("expression"), "expression is not specified"))
	} else {
		faults = append(faults, e.check(path.Child("expression"), v.Expression, expression.Condition(v.Expression), true, false)...)
	}
	at := path.Child("messageExpression")
	switch text := v.MessageExpression; {
	case text != "" && strings.TrimSpace(text) == "":
		faults = append(faults, field.Invalid(at, text, "must be non-empty if specified"))
	case text != "":
		faults = append(faults, e.check(at, text, expression.Message(text), false, false)...)
	}
	switch text := strings.TrimSpace(v.Message); {
	case v.Message != "" && text == "":
		faults = append(faults, field.Invalid(path.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.ContainsAny(text, "\n\r"):
		faults = append(faults, field.Invalid(path.Child("message"), v.Message, "must not contain line breaks"))
	}
	if v.Reason != nil {
		faults = append(faults, supported(path.Child("reason"), *v.Reason, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
			metav1.StatusReasonRequestEntityTooLarge, metav1.StatusReasonUnauthorized)...)
	}
	return faults
}

// Limits of audit annotations: how many, and how long an expression.
const (
	maxAuditAnnotations    = 20
	maxAuditExpressionSize = 5 << 10
)

func (e expressions) auditAnnotations(path *field.Path, policy string, list []admissionv1.AuditAnnotation) field.ErrorList {
	var faults field.ErrorList
	if len(list) > maxAuditAnnotations {
		faults = append(faults, field.Invalid(path, list, fmt.Sprintf("must not have more than %d auditAnnotations", maxAuditAnnotations)))
	}
	keys := names{}
	for i, a := range list {
		at := path.Index(i)
		if policy == "" {
			faults = append(faults, field.Invalid(at.Child("key"), a.Key, "requires metadata.name be non-empty"))
		} else {
			faults = append(faults, qualifiedName(at.Child("key"), policy+"/"+a.Key)...)
		}
		value := at.Child("valueExpression")
		switch text := strings.TrimSpace(a.ValueExpression); {
		case text == "":
			faults = append(faults, field.Required(value, "valueExpression is not specified"))
		case len(text) > maxAuditExpressionSize:
			faults = append(faults, field.Required(value, fmt.Sprintf("must not exceed %d bytes in length", maxAuditExpressionSize)))
		default:
			faults = append(faults, e.check(value, a.ValueExpression, expression.AuditValue(a.Key, text), true, false)...)
		}
		faults = append(faults, keys.add(at.Child("key"), a.Key)...)
	}
	return faults
}

// mutation has the one patch that its type names.
func (e expressions) mutation(path *field.Path, m *admissionv1.Mutation) field.ErrorList {
	apply, patch := path.Child("applyConfiguration"), path.Child("jsonPatch")
	switch m.PatchType {
	case admissionv1.PatchTypeApplyConfiguration:
		var faults field.ErrorList
		if m.ApplyConfiguration == nil {
			faults = append(faults, field.Required(apply, "must be specified when patchType is ApplyConfiguration"))
		} else {
			text := strings.TrimSpace(m.ApplyConfiguration.Expression)
			faults = append(faults, e.patch(apply.Child("expression"), text, expression.ApplyConfiguration(text))...)
		}
		if m.JSONPatch != nil {
			faults = append(faults, field.Invalid(patch, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration"))
		}
		return faults
	case admissionv1.PatchTypeJSONPatch:
		var faults field.ErrorList
		if m.JSONPatch == nil {
			faults = append(faults, field.Required(patch, "must be specified when patchType is JSONPatch"))
		} else {
			text := strings.TrimSpace(m.JSONPatch.Expression)
			faults = append(faults, e.patch(patch.Child("expression"), text, expression.JSONPatch(text))...)
		}
		if m.ApplyConfiguration != nil {
			faults = append(faults, field.Invalid(apply, "{applyConfiguration}", "must not be specified when patchType is JSONPatch"))
		}
		return faults
	}
	return oneOf(path.Child("patchType"), m.PatchType, admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch)
}

func (e expressions) patch(path *field.Path, text string, accessor plugincel.ExpressionAccessor) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return e.check(path, text, accessor, true, true)
}

// maxMatchConditions bounds those of a webhook or policy.
const maxMatchConditions = 64

// matchConditions judges those of a webhook, which has no parameters, or of a policy. They know no variables.
func matchConditions(path *field.Path, list []admissionv1.MatchCondition, params bool) field.ErrorList {
	var faults field.ErrorList
	if len(list) > maxMatchConditions {
		faults = append(faults, field.TooMany(path, len(list), maxMatchConditions))
	}
	seen := names{}
	for i, c := range list {
		at := path.Index(i)
		if text := strings.TrimSpace(c.Expression); text == "" {
			faults = append(faults, field.Required(at.Child("expression"), ""))
		} else {
			faults = append(faults, expressions{params: params}.check(at.Child("expression"), text, expression.Condition(text), true, false)...)
		}
		if c.Name == "" {
			faults = append(faults, field.Required(at.Child("name"), ""))
			continue
		}
		faults = append(faults, qualifiedName(at.Child("name"), c.Name)...)
		faults = append(faults, seen.add(at.Child("name"), c.Name)...)
	}
	return faults
}
