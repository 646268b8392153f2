package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
)

// maxPolicyTypes bounds how many types one rule of a policy is checked against, as in Kubernetes.
const maxPolicyTypes = 10

// celTypes checks expressions against the server's OpenAPI.
type celTypes struct {
	schemas resolver.SchemaResolver
	mapper  meta.ResettableRESTMapper
}

// check returns what does not fit, by the field of the expression. Kinds that cannot be found are left out, and so are
// rules with wildcards.
func (t celTypes) check(policy *admissionv1.ValidatingAdmissionPolicy) []admissionv1.ExpressionWarning {
	spec := &policy.Spec
	var envs []kindEnv
	for _, kind := range t.kinds(spec.MatchConstraints) {
		if object := t.declared(kind); object != nil {
			env, err := newKindEnv(kind, object, spec.ParamKind != nil, t.declared(paramKindOf(spec.ParamKind)))
			if err == nil {
				envs = append(envs, env)
			}
		}
	}
	var warnings []admissionv1.ExpressionWarning
	check := func(path *field.Path, text string) {
		if issues := checkWith(envs, spec.Variables, text); issues != "" {
			warnings = append(warnings, admissionv1.ExpressionWarning{FieldRef: path.String(), Warning: issues})
		}
	}
	for i, v := range spec.Validations {
		at := field.NewPath("spec", "validations").Index(i)
		check(at.Child("expression"), v.Expression)
		if v.MessageExpression != "" {
			check(at.Child("messageExpression"), v.MessageExpression)
		}
	}
	return warnings
}

// kinds are those that the rules name, in order.
func (t celTypes) kinds(match *admissionv1.MatchResources) []schema.GroupVersionKind {
	if match == nil {
		return nil
	}
	found := map[schema.GroupVersionKind]bool{}
	for i := range match.ResourceRules {
		rule := &match.ResourceRules[i].Rule
		for n, gvr := range namedResources(rule) {
			if n == maxPolicyTypes {
				break
			}
			for _, kind := range t.kindsFor(gvr) {
				found[kind] = true
			}
		}
	}
	var out []schema.GroupVersionKind
	for kind := range found {
		out = append(out, kind)
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// kindsFor asks discovery again if it does not know the resource yet.
func (t celTypes) kindsFor(gvr schema.GroupVersionResource) []schema.GroupVersionKind {
	kinds, err := t.mapper.KindsFor(gvr)
	if err != nil {
		t.mapper.Reset()
		if kinds, err = t.mapper.KindsFor(gvr); err != nil {
			return nil
		}
	}
	return kinds
}

// namedResources are the combinations of what a rule names; none if it has a wildcard for groups or versions.
func namedResources(rule *admissionv1.Rule) []schema.GroupVersionResource {
	if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIVersions, "*") {
		return nil
	}
	var out []schema.GroupVersionResource
	for _, group := range slices.Sorted(slices.Values(rule.APIGroups)) {
		for _, version := range slices.Sorted(slices.Values(rule.APIVersions)) {
			for _, resource := range slices.Sorted(slices.Values(rule.Resources)) {
				if !strings.ContainsAny(resource, "*/") {
					out = append(out, schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
				}
			}
		}
	}
	return out
}

func paramKindOf(p *admissionv1.ParamKind) schema.GroupVersionKind {
	if p == nil {
		return schema.GroupVersionKind{}
	}
	return schema.FromAPIVersionAndKind(p.APIVersion, p.Kind)
}

// declared is the type of a kind; nil if the server does not describe it.
func (t celTypes) declared(kind schema.GroupVersionKind) *apiservercel.DeclType {
	if kind.Empty() {
		return nil
	}
	s, err := t.schemas.ResolveSchema(kind)
	if err != nil {
		return nil
	}
	declared := common.SchemaDeclType(&openapi.Schema{Schema: s}, true)
	if declared == nil {
		return nil
	}
	return declared.MaybeAssignTypeName(strings.ReplaceAll(kind.Group, ".", "_") + "_" + kind.Version + "_" + kind.Kind)
}

// kindEnv is what expressions know when the request's object is of one kind.
type kindEnv struct {
	kind schema.GroupVersionKind
	set  *environment.EnvSet
}

func newKindEnv(kind schema.GroupVersionKind, object *apiservercel.DeclType, hasParams bool, params *apiservercel.DeclType) (kindEnv, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	types := []*apiservercel.DeclType{request, namespace, object}
	options := []cel.EnvOption{
		cel.Variable(plugincel.RequestVarName, request.CelType()), cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		cel.Variable(plugincel.ObjectVarName, object.CelType()), cel.Variable(plugincel.OldObjectVarName, object.CelType()),
		cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
	}
	switch {
	case params != nil && params.TypeName() != object.TypeName():
		types = append(types, params)
		fallthrough
	case params != nil:
		options = append(options, cel.Variable(plugincel.ParamsVarName, params.CelType()))
	case hasParams:
		options = append(options, cel.Variable(plugincel.ParamsVarName, cel.DynType))
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options, DeclTypes: types,
	})
	return kindEnv{kind, set}, err
}

// checkWith compiles an expression for each kind, and returns what is wrong, a paragraph for each; nothing, if it fits all.
func checkWith(envs []kindEnv, variables []admissionv1.Variable, text string) string {
	var paragraphs []string
	for _, env := range envs {
		composed, err := plugincel.NewCompositedCompilerForTypeChecking(env.set)
		if err != nil {
			continue
		}
		composed.Compiler = typesOnly{composed}
		for _, v := range variables {
			composed.CompileAndStoreVariable(celText{v.Name, v.Expression}, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions)
		}
		result := composed.CompileCELExpression(celText{"", text}, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions)
		if result.Error != nil {
			paragraphs = append(paragraphs, fmt.Sprintf("%v: %s\n", env.kind, result.Error))
		}
	}
	return strings.Join(paragraphs, "\n")
}

// celText is an expression of any type.
type celText struct{ name, text string }

// GetName implements NamedExpressionAccessor.
func (t celText) GetName() string { return t.name }

// GetExpression implements ExpressionAccessor.
func (t celText) GetExpression() string { return t.text }

// ReturnTypes implements ExpressionAccessor.
func (t celText) ReturnTypes() []*cel.Type { return []*cel.Type{cel.AnyType} }

// typesOnly compiles as far as the types are known.
type typesOnly struct{ composed *plugincel.CompositedCompiler }

// CompileCELExpression implements plugincel.Compiler.
func (c typesOnly) CompileCELExpression(text plugincel.ExpressionAccessor, _ plugincel.OptionalVariableDeclarations, mode environment.Type) plugincel.CompilationResult {
	failed := func(kind apiservercel.ErrorType, detail string) plugincel.CompilationResult {
		return plugincel.CompilationResult{ExpressionAccessor: text, Error: &apiservercel.Error{Type: kind, Detail: detail}}
	}
	env, err := c.composed.Env(mode)
	if err != nil {
		return failed(apiservercel.ErrorTypeInternal, err.Error())
	}
	ast, issues := env.Compile(text.GetExpression())
	if issues != nil {
		return failed(apiservercel.ErrorTypeInvalid, issues.String())
	}
	return plugincel.CompilationResult{OutputType: ast.OutputType()}
}
