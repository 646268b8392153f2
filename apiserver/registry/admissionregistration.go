package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// admissionRows are those of admissionregistration.k8s.io: webhooks (here) and policies
// (admissionpolicies.go), with their expressions (admissionexpressions.go).
func admissionRows() []*Resource {
	rows := []*Resource{
		mutatingPolicies(), mutatingPolicyBindings(), mutatingWebhooks(),
		validatingPolicies(), validatingPolicyBindings(), validatingWebhooks(),
	}
	for _, r := range rows {
		r.Namespaced, r.Categories = false, []string{"api-extensions"}
		r.Strategy.NeedsResourceVersion = true
	}
	return rows
}

func validatingWebhooks() *Resource {
	r := newRow[admissionv1.ValidatingWebhookConfiguration, admissionv1.ValidatingWebhookConfigurationList](
		admissionv1.SchemeGroupVersion, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
	r.Strategy = Strategy{
		Default: defaulter(func(c *admissionv1.ValidatingWebhookConfiguration) {
			for i := range c.Webhooks {
				defaultWebhook(validatingHook(&c.Webhooks[i]))
			}
		}),
		Validate: validator(func(c *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
			hooks := make([]webhook, len(c.Webhooks))
			for i := range c.Webhooks {
				hooks[i] = validatingHook(&c.Webhooks[i])
			}
			return validateWebhooks(hooks)
		}),
	}
	r.Columns = webhookColumns
	r.Row = cells(func(c *admissionv1.ValidatingWebhookConfiguration, now time.Time) []any {
		return []any{c.Name, int64(len(c.Webhooks)), age(&c.ObjectMeta, now)}
	})
	return r
}

func mutatingWebhooks() *Resource {
	r := newRow[admissionv1.MutatingWebhookConfiguration, admissionv1.MutatingWebhookConfigurationList](
		admissionv1.SchemeGroupVersion, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
	r.Strategy = Strategy{
		Default: defaulter(func(c *admissionv1.MutatingWebhookConfiguration) {
			for i := range c.Webhooks {
				defaultWebhook(mutatingHook(&c.Webhooks[i]))
				setPointer(&c.Webhooks[i].ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
			}
		}),
		Validate: validator(func(c *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
			hooks := make([]webhook, len(c.Webhooks))
			var faults field.ErrorList
			for i := range c.Webhooks {
				hooks[i] = mutatingHook(&c.Webhooks[i])
				if p := c.Webhooks[i].ReinvocationPolicy; p != nil {
					faults = append(faults, supported(field.NewPath("webhooks").Index(i).Child("reinvocationPolicy"), *p,
						admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy)...)
				}
			}
			return append(faults, validateWebhooks(hooks)...)
		}),
	}
	r.Columns = webhookColumns
	r.Row = cells(func(c *admissionv1.MutatingWebhookConfiguration, now time.Time) []any {
		return []any{c.Name, int64(len(c.Webhooks)), age(&c.ObjectMeta, now)}
	})
	return r
}

var webhookColumns = columns([]string{"Name", "Webhooks:integer", "Age"})

// webhook is what the two kinds of webhook have in common; it points into one of them.
type webhook struct {
	name           string
	client         *admissionv1.WebhookClientConfig
	rules          []admissionv1.RuleWithOperations
	failure        **admissionv1.FailurePolicyType
	match          **admissionv1.MatchPolicyType
	namespaces     **metav1.LabelSelector
	objects        **metav1.LabelSelector
	sideEffects    *admissionv1.SideEffectClass
	timeoutSeconds **int32
	reviewVersions []string
	conditions     []admissionv1.MatchCondition
}

func validatingHook(w *admissionv1.ValidatingWebhook) webhook {
	return webhook{w.Name, &w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector,
		w.SideEffects, &w.TimeoutSeconds, w.AdmissionReviewVersions, w.MatchConditions}
}

func mutatingHook(w *admissionv1.MutatingWebhook) webhook {
	return webhook{w.Name, &w.ClientConfig, w.Rules, &w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector,
		w.SideEffects, &w.TimeoutSeconds, w.AdmissionReviewVersions, w.MatchConditions}
}

func defaultWebhook(w webhook) {
	setPointer(w.failure, admissionv1.Fail)
	setPointer(w.match, admissionv1.Equivalent)
	setPointer(w.namespaces, metav1.LabelSelector{})
	setPointer(w.objects, metav1.LabelSelector{})
	setPointer(w.timeoutSeconds, 10)
	if w.client.Service != nil {
		setPointer(&w.client.Service.Port, 443)
	}
	for i := range w.rules {
		setPointer(&w.rules[i].Scope, admissionv1.AllScopes)
	}
}

func validateWebhooks(hooks []webhook) field.ErrorList {
	var faults field.ErrorList
	seen := names{}
	for i, w := range hooks {
		at := field.NewPath("webhooks").Index(i)
		faults = append(faults, validateWebhook(at, w)...)
		faults = append(faults, seen.add(at.Child("name"), w.name)...)
	}
	return faults
}

func validateWebhook(path *field.Path, w webhook) field.ErrorList {
	faults := validation.IsFullyQualifiedName(path.Child("name"), w.name)
	faults = append(faults, reviewVersions(path.Child("admissionReviewVersions"), w.reviewVersions)...)
	for i := range w.rules {
		faults = append(faults, ruleWithOperations(path.Child("rules").Index(i), &w.rules[i])...)
	}
	faults = append(faults, supported(path.Child("failurePolicy"), **w.failure, admissionv1.Fail, admissionv1.Ignore)...)
	faults = append(faults, supported(path.Child("matchPolicy"), **w.match, admissionv1.Equivalent, admissionv1.Exact)...)
	if w.sideEffects == nil {
		faults = append(faults, field.Required(path.Child("sideEffects"), fmt.Sprintf("must specify one of %s", strings.Join([]string{string(admissionv1.SideEffectClassNone), string(admissionv1.SideEffectClassNoneOnDryRun)}, ", "))))
	} else {
		faults = append(faults, supported(path.Child("sideEffects"), *w.sideEffects, admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun)...)
	}
	if s := **w.timeoutSeconds; s < 1 || s > 30 {
		faults = append(faults, field.Invalid(path.Child("timeoutSeconds"), s, "the timeout value must be between 1 and 30 seconds"))
	}
	faults = append(faults, metavalidation.ValidateLabelSelector(*w.namespaces, metavalidation.LabelSelectorValidationOptions{}, path.Child("namespaceSelector"))...)
	faults = append(faults, metavalidation.ValidateLabelSelector(*w.objects, metavalidation.LabelSelectorValidationOptions{}, path.Child("objectSelector"))...)
	faults = append(faults, matchConditions(path.Child("matchConditions"), w.conditions, false)...)
	return append(faults, clientConfig(path.Child("clientConfig"), w.client)...)
}

// reviewVersions are the AdmissionReviews that the webhook understands; one must be ours.
func reviewVersions(path *field.Path, versions []string) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must specify one of v1, v1beta1")}
	}
	var faults field.ErrorList
	seen, known := names{}, false
	for i, v := range versions {
		if twice := seen.add(path.Index(i), v); len(twice) > 0 {
			faults = append(faults, field.Invalid(path.Index(i), v, "duplicate version"))
		}
		for _, text := range validation.IsDNS1035Label(v) {
			faults = append(faults, field.Invalid(path.Index(i), v, text))
		}
		known = known || v == "v1" || v == "v1beta1"
	}
	if !known {
		faults = append(faults, field.Invalid(path, versions, "must include at least one of v1, v1beta1"))
	}
	return faults
}

func ruleWithOperations(path *field.Path, r *admissionv1.RuleWithOperations) field.ErrorList {
	var faults field.ErrorList
	if len(r.Operations) == 0 {
		faults = append(faults, field.Required(path.Child("operations"), ""))
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionv1.OperationAll) {
		faults = append(faults, field.Invalid(path.Child("operations"), r.Operations, "if '*' is present, must not specify other operations"))
	}
	for i, o := range r.Operations {
		faults = append(faults, supported(path.Child("operations").Index(i), o,
			admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Delete, admissionv1.Update)...)
	}
	faults = append(faults, starOr(path.Child("apiGroups"), r.APIGroups, "groups")...)
	faults = append(faults, starOr(path.Child("apiVersions"), r.APIVersions, "versions")...)
	for i, v := range r.APIVersions {
		if v == "" {
			faults = append(faults, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	faults = append(faults, ruleResources(path.Child("resources"), r.Resources)...)
	return append(faults, supported(path.Child("scope"), *r.Scope, admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope)...)
}

// starOr is a list with something in it, where "*" stands alone.
func starOr(path *field.Path, list []string, what string) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(path, "")}
	case len(list) > 1 && slices.Contains(list, "*"):
		return field.ErrorList{field.Invalid(path, list, "if '*' is present, must not specify other API "+what)}
	}
	return nil
}

// ruleResources: "pods", "pods/status", "*/scale", "pods/*", "*", "*/*", and none that another covers.
func ruleResources(path *field.Path, list []string) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var faults field.ErrorList
	everySub, wholly := map[string]bool{}, map[string]bool{} // "*/scale"; "pods/*"
	for i, r := range list {
		if r == "" {
			faults = append(faults, field.Required(path.Index(i), ""))
			continue
		}
		if r == "*/*" && len(list) > 1 {
			faults = append(faults, field.Invalid(path, list, "if '*/*' is present, must not specify other resources"))
		}
		resource, sub, has := strings.Cut(r, "/")
		if everySub[sub] && has {
			faults = append(faults, field.Invalid(path.Index(i), r, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, r)))
		}
		if wholly[resource] {
			faults = append(faults, field.Invalid(path.Index(i), r, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, r)))
		}
		everySub[sub] = everySub[sub] || has && resource == "*"
		wholly[resource] = wholly[resource] || sub == "*"
	}
	if len(list) > 1 && slices.Contains(list, "*") && !slices.ContainsFunc(list, func(r string) bool { return strings.Contains(r, "/") }) {
		faults = append(faults, field.Invalid(path, list, "if '*' is present, must not specify other resources without subresources"))
	}
	return faults
}

// clientConfig: a webhook is behind a URL or a Service.
func clientConfig(path *field.Path, c *admissionv1.WebhookClientConfig) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		return webhookURL(path.Child("url"), *c.URL)
	}
	at, s := path.Child("service"), c.Service
	faults := required(at.Child("name"), s.Name)
	faults = append(faults, required(at.Child("namespace"), s.Namespace)...)
	faults = append(faults, portNumber(at.Child("port"), *s.Port)...)
	if s.Path == nil {
		return faults
	}
	return append(faults, servicePath(at.Child("path"), *s.Path)...)
}
