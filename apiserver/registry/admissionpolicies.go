package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatingPolicies are evaluated by apiserver/admission/policy. What their expressions say of the types they are for is
// judged by a controller, which writes it into the status.
func validatingPolicies() *Resource {
	r := newRow[admissionv1.ValidatingAdmissionPolicy, admissionv1.ValidatingAdmissionPolicyList](
		admissionv1.SchemeGroupVersion, "validatingadmissionpolicies", "ValidatingAdmissionPolicy")
	r.Strategy = Strategy{
		Default: defaulter(func(p *admissionv1.ValidatingAdmissionPolicy) {
			setPointer(&p.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatch(p.Spec.MatchConstraints)
		}),
		Validate: validator(validateValidatingPolicy),
	}
	r.Subresources = []Subresource{unjudged(sealed(statusOf(r, func(p, old *admissionv1.ValidatingAdmissionPolicy) { p.Spec = old.Spec })))}
	r.Columns = columns([]string{"Name", "Validations:integer", "ParamKind", "Age"})
	r.Row = cells(func(p *admissionv1.ValidatingAdmissionPolicy, now time.Time) []any {
		return []any{p.Name, int64(len(p.Spec.Validations)), paramKindCell(p.Spec.ParamKind), age(&p.ObjectMeta, now)}
	})
	return r
}

func validateValidatingPolicy(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	s := &p.Spec
	e, faults := judgeVariables(s.Variables, s.ParamKind != nil)
	faults = append(faults, validatePolicy(s.FailurePolicy, s.ParamKind, s.MatchConstraints, s.MatchConditions)...)
	if len(s.Validations)+len(s.AuditAnnotations) == 0 {
		faults = append(faults,
			field.Required(specPath.Child("validations"), "validations or auditAnnotations must contain at least one item"),
			field.Required(specPath.Child("auditAnnotations"), "validations or auditAnnotations must contain at least one item"))
	}
	for i := range s.Validations {
		faults = append(faults, e.validation(specPath.Child("validations").Index(i), &s.Validations[i])...)
	}
	return append(faults, e.auditAnnotations(specPath.Child("auditAnnotations"), p.Name, s.AuditAnnotations)...)
}

// mutatingPolicies are evaluated by apiserver/admission/policy.
func mutatingPolicies() *Resource {
	r := newRow[admissionv1.MutatingAdmissionPolicy, admissionv1.MutatingAdmissionPolicyList](
		admissionv1.SchemeGroupVersion, "mutatingadmissionpolicies", "MutatingAdmissionPolicy")
	r.Strategy = Strategy{
		Default: defaulter(func(p *admissionv1.MutatingAdmissionPolicy) {
			setPointer(&p.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatch(p.Spec.MatchConstraints)
		}),
		Validate: validator(validateMutatingPolicy),
	}
	r.Columns = columns([]string{"Name", "Mutations:integer", "ParamKind", "Age"})
	r.Row = cells(func(p *admissionv1.MutatingAdmissionPolicy, now time.Time) []any {
		return []any{p.Name, int64(len(p.Spec.Mutations)), paramKindCell(p.Spec.ParamKind), age(&p.ObjectMeta, now)}
	})
	return r
}

func validateMutatingPolicy(p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	s := &p.Spec
	e, faults := judgeVariables(s.Variables, s.ParamKind != nil)
	faults = append(faults, validatePolicy(s.FailurePolicy, s.ParamKind, s.MatchConstraints, s.MatchConditions)...)
	faults = append(faults, mutableOperations(s.MatchConstraints)...)
	if len(s.Mutations) == 0 {
		faults = append(faults, field.Required(specPath.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range s.Mutations {
		faults = append(faults, e.mutation(specPath.Child("mutations").Index(i), &s.Mutations[i])...)
	}
	return append(faults, oneOf(specPath.Child("reinvocationPolicy"), s.ReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy)...)
}

// validatePolicy is what the two kinds of policy have in common.
func validatePolicy(failure *admissionv1.FailurePolicyType, param *admissionv1.ParamKind, match *admissionv1.MatchResources,
	conditions []admissionv1.MatchCondition) field.ErrorList {
	faults := supported(specPath.Child("failurePolicy"), *failure, admissionv1.Fail, admissionv1.Ignore)
	if param != nil {
		faults = append(faults, paramKind(specPath.Child("paramKind"), param)...)
	}
	at := specPath.Child("matchConstraints")
	if match == nil {
		faults = append(faults, field.Required(at, ""))
	} else {
		faults = append(faults, matchResources(at, match)...)
		if len(match.ResourceRules) == 0 {
			faults = append(faults, field.Required(at.Child("resourceRules"), ""))
		}
	}
	return append(faults, matchConditions(specPath.Child("matchConditions"), conditions, param != nil)...)
}

// mutableOperations: there is nothing to change in what is deleted.
func mutableOperations(match *admissionv1.MatchResources) field.ErrorList {
	var faults field.ErrorList
	if match == nil {
		return nil
	}
	for _, rule := range match.ResourceRules {
		for _, operation := range rule.Operations {
			faults = append(faults, supported(specPath.Child("matchConstraints", "resourceRules", "operations"), operation,
				admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Update)...)
		}
	}
	return faults
}

// paramKind: a group and version that could be served, and a kind.
func paramKind(path *field.Path, p *admissionv1.ParamKind) field.ErrorList {
	var faults field.ErrorList
	at := path.Child("apiVersion")
	if gv, err := schema.ParseGroupVersion(p.APIVersion); p.APIVersion == "" {
		faults = append(faults, field.Required(at, ""))
	} else if err != nil {
		faults = append(faults, field.Invalid(at, p.APIVersion, err.Error()))
	} else {
		if gv.Group != "" {
			faults = append(faults, joined(at, gv.Group, validation.IsDNS1123Subdomain(gv.Group))...)
		}
		if gv.Version == "" {
			faults = append(faults, field.Invalid(at, p.APIVersion, "version must be specified"))
		} else {
			faults = append(faults, joined(at, gv.Version, validation.IsDNS1035Label(gv.Version))...)
		}
	}
	if p.Kind == "" {
		return append(faults, field.Required(path.Child("kind"), ""))
	}
	if texts := validation.IsDNS1035Label(strings.ToLower(p.Kind)); len(texts) > 0 {
		faults = append(faults, field.Invalid(path.Child("kind"), p.Kind, "may have mixed case, but should otherwise match: "+strings.Join(texts, ",")))
	}
	return faults
}

// joined is one fault for all that is wrong with a value.
func joined(path *field.Path, value string, texts []string) field.ErrorList {
	if len(texts) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, strings.Join(texts, ","))}
}

func defaultMatch(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	setPointer(&m.MatchPolicy, admissionv1.Equivalent)
	setPointer(&m.NamespaceSelector, metav1.LabelSelector{})
	setPointer(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			setPointer(&rules[i].Scope, admissionv1.AllScopes)
		}
	}
}

func matchResources(path *field.Path, m *admissionv1.MatchResources) field.ErrorList {
	faults := supported(path.Child("matchPolicy"), *m.MatchPolicy, admissionv1.Equivalent, admissionv1.Exact)
	for child, s := range inOrder(map[string]*metav1.LabelSelector{"namespaceSelector": m.NamespaceSelector, "objectSelector": m.ObjectSelector}) {
		if s == nil {
			faults = append(faults, field.Required(path.Child(child), ""))
		}
		faults = append(faults, metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path.Child(child))...)
	}
	for child, rules := range inOrder(map[string][]admissionv1.NamedRuleWithOperations{"resourceRules": m.ResourceRules, "excludeResourceRules": m.ExcludeResourceRules}) {
		for i := range rules {
			at, names := path.Child(child).Index(i), names{}
			for j, name := range rules[i].ResourceNames {
				faults = append(faults, invalid(at.Child("resourceNames").Index(j), name, pathSegment(name, false))...)
				faults = append(faults, names.add(at.Child("resourceNames").Index(j), name)...)
			}
			faults = append(faults, ruleWithOperations(at, &rules[i].RuleWithOperations)...)
		}
	}
	return faults
}

func paramKindCell(p *admissionv1.ParamKind) string {
	if p == nil {
		return unset
	}
	return p.APIVersion + "/" + p.Kind
}

func validatingPolicyBindings() *Resource {
	r := newRow[admissionv1.ValidatingAdmissionPolicyBinding, admissionv1.ValidatingAdmissionPolicyBindingList](
		admissionv1.SchemeGroupVersion, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding")
	r.Strategy = Strategy{
		Default: defaulter(func(b *admissionv1.ValidatingAdmissionPolicyBinding) { defaultMatch(b.Spec.MatchResources) }),
		Validate: validator(func(b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
			return append(validatePolicyBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources), validationActions(b.Spec.ValidationActions)...)
		}),
	}
	r.Columns = policyBindingColumns
	r.Row = cells(func(b *admissionv1.ValidatingAdmissionPolicyBinding, now time.Time) []any {
		return []any{b.Name, b.Spec.PolicyName, paramRefCell(b.Spec.ParamRef), age(&b.ObjectMeta, now)}
	})
	return r
}

func mutatingPolicyBindings() *Resource {
	r := newRow[admissionv1.MutatingAdmissionPolicyBinding, admissionv1.MutatingAdmissionPolicyBindingList](
		admissionv1.SchemeGroupVersion, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding")
	r.Strategy = Strategy{
		Default: defaulter(func(b *admissionv1.MutatingAdmissionPolicyBinding) { defaultMatch(b.Spec.MatchResources) }),
		Validate: validator(func(b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
			return validatePolicyBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources)
		}),
	}
	r.Columns = policyBindingColumns
	r.Row = cells(func(b *admissionv1.MutatingAdmissionPolicyBinding, now time.Time) []any {
		return []any{b.Name, b.Spec.PolicyName, paramRefCell(b.Spec.ParamRef), age(&b.ObjectMeta, now)}
	})
	return r
}

var policyBindingColumns = columns([]string{"Name", "PolicyName", "ParamRef", "Age"})

func validatePolicyBinding(policy string, ref *admissionv1.ParamRef, match *admissionv1.MatchResources) field.ErrorList {
	at := specPath.Child("policyName")
	faults := required(at, policy)
	if policy != "" {
		faults = append(faults, dnsSubdomain(at, policy)...)
	}
	if ref != nil {
		at := specPath.Child("paramRef")
		if ref.Name != "" {
			faults = append(faults, invalid(at.Child("name"), ref.Name, pathSegment(ref.Name, false))...)
		}
		if ref.Name != "" && ref.Selector != nil {
			faults = append(faults, field.Forbidden(at.Child("name"), "name and selector are mutually exclusive"),
				field.Forbidden(at.Child("selector"), "name and selector are mutually exclusive"))
		}
		if ref.Name == "" && ref.Selector == nil {
			faults = append(faults, field.Required(at, "one of name or selector must be specified"))
		}
		if ref.Selector != nil {
			faults = append(faults, metavalidation.ValidateLabelSelector(ref.Selector, metavalidation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
		}
		if a := ref.ParameterNotFoundAction; a == nil {
			faults = append(faults, field.Required(at.Child("parameterNotFoundAction"), ""))
		} else {
			faults = append(faults, supported(at.Child("parameterNotFoundAction"), *a, admissionv1.DenyAction, admissionv1.AllowAction)...)
		}
	}
	if match != nil {
		faults = append(faults, matchResources(specPath.Child("matchResources"), match)...)
	}
	return faults
}

func validationActions(actions []admissionv1.ValidationAction) field.ErrorList {
	path := specPath.Child("validationActions")
	if len(actions) == 0 {
		return field.ErrorList{field.Required(path, "at least one validation action is required")}
	}
	var faults field.ErrorList
	seen := names{}
	for i, a := range actions {
		faults = append(faults, supported(path.Index(i), a, admissionv1.Audit, admissionv1.Deny, admissionv1.Warn)...)
		faults = append(faults, seen.add(path.Index(i), string(a))...)
	}
	if slices.Contains(actions, admissionv1.Deny) && slices.Contains(actions, admissionv1.Warn) {
		faults = append(faults, field.Invalid(path, actions, fmt.Sprintf("must not contain both %s and %s (repeating the same validation failure information in the API response and headers serves no purpose)", admissionv1.Deny, admissionv1.Warn)))
	}
	return faults
}

func paramRefCell(ref *admissionv1.ParamRef) string {
	switch {
	case ref == nil:
		return unset
	case ref.Name != "" && ref.Namespace != "":
		return ref.Namespace + "/" + ref.Name
	case ref.Name != "":
		return "*/" + ref.Name
	case ref.Selector != nil:
		return ref.Selector.String()
	}
	return unset
}
